"""The network between the parts of the lab: what TCP had to send again because it was lost. Linux
sends an answer of one segment again after 200 ms (TCP_RTO_MIN; RFC 6298 has 1 s)."""

from lab.judge.resources.resource import DRIVER, SeenTrial, Standing, Wait, resource

RESENT_MS = 200.0
# Fewer may be a moment's.
LEAST = 10


@resource("network")
def network(seen: SeenTrial) -> Standing | None:
    """200 ms for each segment that TCP sent again.

    Measured: no

    What server and generator sent again, in their network namespaces. A full accept queue drops,
    too: attempts to connect are left out, and all that was sent again to a queue that overflowed.
    What Toxiproxy and further generators send again is not counted."""
    mine, name = {"server": seen.server}, "lab_kernel_{}_total"
    every = seen.total("by the server", "segments", name.format("tcp_retransmits"), **mine)
    syn = seen.observation.increase(name.format("tcp_syn_retransmits"), **mine)
    if every is None or syn is None:
        return None
    on_path = seen.observation.increase("lab_path_listen_overflows_total")
    at_server = seen.observation.increase(name.format("listen_overflows"), **mine)
    sent = 0.0 if on_path else max(0.0, every - syn)
    resent = 0.0 if at_server != 0 else seen.record.usage.window_resent or 0.0
    seen.noted("by the generator", resent, "segments", DRIVER)
    waits = tuple(
        Wait(place, ms=count * RESENT_MS / seen.requests, measured=False)
        for place, count in (("path", sent), ("unexplained", resent))
        if count >= LEAST
    )
    return Standing(sent + resent, None, "segments", waits=waits)
