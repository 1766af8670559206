"""The network between the parts of the lab: what TCP had to send again because it was lost. Linux
sends an answer of one segment again after 200 ms (TCP_RTO_MIN; RFC 6298 has 1 s)."""

from lab.judge.resources.resource import DRIVER, Standing, Trial, Wait, resource

RESENT_MS = 200.0
# Fewer may be a moment's.
LEAST = 10


@resource("network")
def network(trial: Trial) -> Standing | None:
    """200 ms for each segment that TCP sent again.

    Measured: no

    What server and generator sent again, in their network namespaces. A full accept queue drops,
    too: attempts to connect are left out, and all that was sent again to a queue that overflowed.
    What Toxiproxy and further generators send again is not counted."""
    rise, server = trial.observation.increase, trial.server
    every = trial.server_metrics().total(
        "by the server", "segments", "lab_kernel_tcp_retransmits_total"
    )
    attempts = rise("lab_kernel_tcp_syn_retransmits_total", server=server)
    if every is None or attempts is None:
        return None
    on_path = rise("lab_path_listen_overflows_total")
    at_server = rise("lab_kernel_listen_overflows_total", server=server)
    sent = 0.0 if on_path else max(0.0, every - attempts)
    resent = 0.0 if at_server != 0 else trial.usage.window_resent or 0.0
    trial.note("by the generator", resent, "segments", DRIVER)
    waits = tuple(
        Wait(place, ms=count * RESENT_MS / trial.requests, measured=False)
        for place, count in (("path", sent), ("unexplained", resent))
        if count >= LEAST
    )
    return Standing(sent + resent, None, "segments", waits=waits)
