"""How long threads of server, Toxiproxy and downstream ran, and waited for a CPU, in the window.

The server tells its own threads by class, the downstream those of its process and of Toxiproxy's
(`schedstat` of the kernel). Of pacer its own lines tell.
"""

import math
import re

from lab.model import Observation, ThreadTimes

# Of the server by class of threads, of the parts behind it by process.
RUN, RUNQ = "lab_thread_run_seconds_total", "lab_thread_runq_seconds_total"
# What a server may write into a table as the name of a class.
_CLASS = re.compile(r"[a-z]{1,16}")
PROCESS_RUN, PROCESS_RUNQ = "lab_process_run_seconds_total", "lab_process_runq_seconds_total"


def thread_times(server: str, observation: Observation | None) -> ThreadTimes:
    """The times in exactly the window, as far as the parts tell them."""
    if observation is None:
        return ThreadTimes()
    proxy, downstream = {"process": "toxiproxy"}, {"process": "downstream"}
    return ThreadTimes(
        server_run_s=_seconds(observation, RUN, server=server),
        server_runq_s=_seconds(observation, RUNQ, server=server),
        server_runq_class=_longest(observation, server),
        proxy_run_s=_seconds(observation, PROCESS_RUN, **proxy),
        proxy_runq_s=_seconds(observation, PROCESS_RUNQ, **proxy),
        downstream_run_s=_seconds(observation, PROCESS_RUN, **downstream),
        downstream_runq_s=_seconds(observation, PROCESS_RUNQ, **downstream),
    )


def _seconds(observation: Observation, name: str, **labels: str) -> float | None:
    rate, (opens, closes) = observation.rate(name, **labels), observation.window
    seconds = math.nan if rate is None else rate * (closes - opens)
    # A server may show whatever numbers it likes.
    return seconds if math.isfinite(seconds) else None


def _longest(observation: Observation, server: str) -> str | None:
    """The class whose threads waited longest; None where that of one is not known."""
    classes = {waits.labels.get("threads", "") for waits in observation.series(RUNQ, server=server)}
    rates = {name: observation.rate(RUNQ, server=server, threads=name) for name in sorted(classes)}
    known = {
        name: rate for name, rate in rates.items() if rate is not None and _CLASS.fullmatch(name)
    }
    longest = max(known, key=known.__getitem__, default=None)
    return longest if longest and len(known) == len(rates) and known[longest] > 0 else None
