"""Fetches the samples of a trial's window from Prometheus, once, into the trial's raw folder.

A margin on both sides gives the increase of a counter at the exact edges.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from lab.errors import LabUnreachable
from lab.judge.checks.data import jobs
from lab.model import Remark, Series, TrialRecord
from lab.store import series
from lab.system.host import System
from lab.system.stack import Stack

MARGIN_S = 5.0
# cAdvisor reads a container every one to two seconds, so its newest sample is at most this much
# older than a scrape.
OLDER_S = 2.0
WAIT_S = 15.0
POLL_S = 0.25
# A longer window is thinned to at most MOST_SAMPLES of each series.
MOST_SAMPLES = 600
# The machine's CPUs and memory, which are rarely scraped: as recorded by the rules
# (prometheus/rules/containers.yml).
MACHINE = '{__name__=~"machine:machine_.+"}'
# Shows when each container was read.
CONTAINERS = 'container_cpu_usage_seconds_total{job="cadvisor"}'


def selectors(server: str, route: str, *, foreign: bool = False) -> tuple[str, ...]:
    """The series that are kept: all of the measured server and of the parts around it; request
    times and clients of the trial's route only. For a foreign service: its JVM, the containers
    and its clients."""
    path = route.partition("?")[0]
    clients = f'{{job="loadgen",server=~"{_escaped(server)}|",route=~"{_escaped(path)}|"}}'
    jvm = f'{{job="jvm",server="{server}"}}'
    if foreign:
        return jvm, clients, '{job="cadvisor"}', MACHINE
    request = "lab_http_request_seconds_bucket"
    return (
        f'{{job="server",server="{server}",__name__!="{request}"}}',
        f'{request}{{job="server",server="{server}",route="{path}"}}',
        jvm,
        clients,
        *(f'{{job="{job}"}}' for job in ("downstream", "toxiproxy", "cadvisor")),
        MACHINE,
    )


def _escaped(text: str) -> str:
    """The text, escaped as a regular expression in a PromQL string."""
    return re.sub(r"[^\w/-]", lambda match: f"\\\\{match[0]}", text)


def observe(
    record: TrialRecord, window_s: float, raw: Path, stack: Stack, system: System
) -> Remark | None:
    """Keep the series of a trial's window, `window_s` long, in its raw folder. Waits until
    Prometheus has samples from after the window, at most WAIT_S. Returns what is missing. Raises
    Interrupted."""
    opens, closes = (moment.timestamp() for moment in record.window(window_s))
    wanted = selectors(record.plan.server, record.plan.route, foreign=record.before.foreign)
    try:
        late = _late(record, closes, stack, system)
        step_s = 0 if window_s <= MOST_SAMPLES else -(-window_s // MOST_SAMPLES)
        margin_s = max(MARGIN_S, 2 * step_s)
        length_s = window_s + 2 * margin_s
        span = f"[{length_s:.0f}s:{step_s:.0f}s]" if step_s else f"[{length_s * 1000:.0f}ms]"
        queries = [f"{selector}{span}" for selector in wanted]
        ask = _asker(stack, system)
        found = [each for query in queries for each in ask(query, closes + margin_s)]
        series.write(raw, (opens, closes), stack.prometheus.version(), queries, found)
    except LabUnreachable as failure:
        return Remark("not-observed", {"problem": str(failure)})
    return Remark("observed-late", {"jobs": ", ".join(late)}) if late else None


def _asker(stack: Stack, system: System) -> Callable[[str, float], tuple[Series, ...]]:
    """Asks Prometheus for the series of a query until a time, and again for WAIT_S from now on if
    it does not answer: it may come back with its samples."""
    given_up = system.monotonic() + WAIT_S

    def ask(query: str, until_s: float) -> tuple[Series, ...]:
        while True:
            try:
                return stack.prometheus.series(query, until_s)
            except LabUnreachable:
                if system.monotonic() >= given_up:
                    raise
            system.sleep(POLL_S)

    return ask


def _late(record: TrialRecord, closes: float, stack: Stack, system: System) -> Sequence[str]:
    """Wait until every job has samples from `closes` or later, on each machine; the jobs that
    have none in time."""
    awaited, server = (*jobs(record), "loadgen"), _escaped(record.plan.server)
    ask, given_up = _asker(stack, system), system.monotonic() + WAIT_S
    up = f'up{{job=~"{"|".join(awaited)}",server=~"{server}|"}}[2m]'
    while True:
        newest: dict[str, float] = {}
        # From a minute before it closes: a machine without a sample since then is among them.
        for target in ask(up, closes + 60):
            job, last = target.labels.get("job", ""), max(target.times_of(1.0), default=0.0)
            newest[job] = min(newest.get(job, last), last)
        late = [job for job in awaited if newest.get(job, 0.0) < closes]
        if "cadvisor" not in late and newest.get("cadvisor", closes) < closes + OLDER_S:
            # A container that is gone has no such sample, and OLDER_S is the end of its wait.
            read = ask(f"{CONTAINERS}[{OLDER_S + 58:.0f}s]", closes + 58)
            if any(container.times[-1] < closes for container in read):
                late.append("cadvisor")
        if not late or system.monotonic() >= given_up:
            return late
        system.sleep(POLL_S)
