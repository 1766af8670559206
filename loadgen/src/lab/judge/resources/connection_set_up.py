"""The accept queues between server and downstream. Toxiproxy accepts a connection, connects it to
the downstream, and only then accepts the next: meanwhile the kernel holds the others, and the calls
on them wait (go/downstream/service/accept_queues.go)."""

from lab.judge.resources.resource import Standing, Trial, Wait, resource

# A peak's own connections are not measured: so many of them stand in the queues, on average.
STANDING = 0.05


@resource("connection set-up")
def connection_set_up(trial: Trial) -> Standing | None:
    """Mean length of the accept queues of Toxiproxy and the downstream ÷ calls per second.

    Measured: yes"""
    queue, unit, metrics = "lab_path_accept_queue_", "connections", trial.metrics()
    proxy, called = (
        trial.metrics(listener=at).rate(f"at {at}", unit, f"{queue}connection_seconds_total")
        for at in ("toxiproxy", "downstream")
    )
    # The downstream is quick to accept: without the proxy's queue nothing is known.
    if not trial.calls_downstream or proxy is None:
        return None
    level, spike = proxy + (called or 0.0), trial.plan.spike
    metrics.peak("longest", unit, f"{queue}length")
    metrics.rate("set up", "per s", "lab_downstream_accepted_connections_total")
    seen, server = trial.observation, trial.server
    calls = seen.increase("lab_downstream_calls_total", server=server)
    each_ms = level * seen.window_s * 1000 / calls if calls else trial.each_ms(level)
    failed = level / spike.extra if spike and level >= STANDING * spike.extra else 0.0
    waiting = (Wait("path", ms=each_ms or 0.0),)
    return Standing(level, None, unit, failed=failed, waits=waiting)
