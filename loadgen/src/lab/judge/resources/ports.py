"""The local ports of the server's container for connections to the downstream. One in TIME_WAIT is
free for the next call after a second (ip-sysctl, tcp_tw_reuse=1, as compose.yaml has it)."""

from lab.judge.resources.resource import Standing, Trial, resource, waits

# Those of a container that does not report them: 10000 to 65535 (compose.yaml).
USUAL = 55_536
# The kernel looks for a free port from a random one on: from here on that takes ten looks and more.
NEARLY_ALL = 0.9


@resource("ports")
def ports(trial: Trial) -> Standing | None:
    """90 % in use: failed calls, or what is left of path and connection.

    Measured: errors"""
    metrics = trial.server_metrics()
    gone = metrics.peak("in TIME_WAIT", "sockets", "lab_kernel_tcp_time_wait")
    out = metrics.peak("leased", "connections", "lab_downstream_connections_leased")
    if gone is None or out is None:
        return None
    most, failed = trial.before.local_ports or USUAL, trial.failed_calls("error")
    full = out >= NEARLY_ALL * most
    # With those in TIME_WAIT they are taken only where calls fail.
    taken = full or (failed and out + gone >= NEARLY_ALL * most)
    waiting = waits(("pending", "path") if full else (), measured=False)
    used = min(out, float(most))
    return Standing(used, most, "ports", failed=failed if taken else 0.0, waits=waiting)
