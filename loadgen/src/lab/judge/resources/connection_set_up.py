"""The accept queues between server and downstream. Toxiproxy accepts a connection, connects it to
the downstream, and only then accepts the next: meanwhile the kernel holds the others, and the calls
on them wait (go/downstream/service/accept_queues.go)."""

from lab.judge.resources.resource import SeenTrial, Standing, Wait, resource

# A peak's own connections are not measured: so many of them stand in the queues, on average.
STANDING = 0.05


@resource("connection set-up")
def connection_set_up(seen: SeenTrial) -> Standing | None:
    """Mean length of the accept queues of Toxiproxy and the downstream ÷ calls per second.

    Measured: yes"""
    queue, unit = "lab_path_accept_queue_", "connections"
    proxy, called = (
        seen.rate(f"at {at}", unit, f"{queue}connection_seconds_total", listener=at)
        for at in ("toxiproxy", "downstream")
    )
    # The downstream is quick to accept: without the proxy's queue nothing is known.
    if not seen.call.route.calls_downstream or proxy is None:
        return None
    level, spike = proxy + (called or 0.0), seen.plan.spike
    seen.peak("longest", unit, f"{queue}length")
    seen.rate("set up", "per s", "lab_downstream_accepted_connections_total")
    calls = seen.observation.increase("lab_downstream_calls_total", server=seen.server)
    each_ms = level * seen.window_s * 1000 / calls if calls else seen.each_ms(level)
    return Standing(
        *(level, None, unit),
        failed=level / spike.extra if spike and level >= STANDING * spike.extra else 0.0,
        waits=(Wait("path", ms=each_ms or 0.0),),
    )
