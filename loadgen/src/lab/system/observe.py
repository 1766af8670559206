"""Fetches a trial's window as Prometheus saw it, once, and keeps it in the trial's raw folder.

The samples are kept as they were scraped, so every later question goes to the same samples, with
or without the lab. A margin on both sides of the window tells a counter's rise at its exact edges.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from lab.errors import LabUnreachable
from lab.judge.checks.data import jobs
from lab.model import Series, TrialRecord
from lab.store import series
from lab.system.host import System
from lab.system.stack import Stack

MARGIN_S = 5.0
# cAdvisor reads a container every one to two seconds, so its newest sample is at most so much older
# than a scrape.
OLDER_S = 2.0
WAIT_S = 15.0
POLL_S = 0.25
# A window so long is thinned to at most MOST_SAMPLES of each series.
MOST_SAMPLES = 600
# The machine's CPUs and memory, of which a window often holds no scraped sample: as the rules say
# (prometheus/rules/containers.yml).
MACHINE = '{__name__=~"machine:machine_.+"}'

# When each container was read, with its samples' own times.
CONTAINERS = 'container_cpu_usage_seconds_total{job="cadvisor"}'


def selectors(server: str, route: str, *, foreign: bool = False) -> tuple[str, ...]:
    """The series that are kept: everything of the measured server and of the parts around it, but
    request times and clients of the trial's own route only. For a foreign service: its JVM, its
    container and its clients, if there are such."""
    path = route.partition("?")[0]
    mine = f'server="{server}"'
    if foreign:
        return (
            f'{{job="jvm",{mine}}}',
            f'{{job="loadgen",server=~"{_escaped(server)}|",route=~"{_escaped(path)}|"}}',
            '{job="cadvisor"}',
            MACHINE,
        )
    request = "lab_http_request_seconds_bucket"
    return (
        f'{{job="server",{mine},__name__!="{request}"}}',
        f'{request}{{job="server",{mine},route="{path}"}}',
        f'{{job="jvm",{mine}}}',
        f'{{job="loadgen",server=~"{server}|",route=~"{path}|"}}',
        *(f'{{job="{job}"}}' for job in ("downstream", "toxiproxy", "cadvisor")),
        MACHINE,
    )


def _escaped(text: str) -> str:
    """The path, escaped as a regular expression in a PromQL string."""
    return re.sub(r"[^\w/-]", lambda found: f"\\\\{found[0]}", text)


def observe(
    record: TrialRecord, window_s: float, raw: Path, stack: Stack, system: System
) -> str | None:
    """Keep the series of a trial's window, `window_s` long, in its raw folder.

    Waits until Prometheus has samples from after the window, at most WAIT_S. Returns
    what is wrong with what it kept, or why it kept nothing; None when all is well. Raises
    Interrupted.
    """
    opens, closes = (moment.timestamp() for moment in record.window(window_s))
    asked = selectors(record.plan.server, record.plan.route, foreign=record.before.foreign)
    try:
        scraped = (*jobs(record), "loadgen")
        late = _wait(record.plan.server, scraped, closes, stack, system)
        step_s = 0 if window_s <= MOST_SAMPLES else -(-window_s // MOST_SAMPLES)
        margin_s = max(MARGIN_S, 2 * step_s)
        length_s = window_s + 2 * margin_s
        span = f"[{length_s:.0f}s:{step_s:.0f}s]" if step_s else f"[{length_s * 1000:.0f}ms]"
        given_up = system.monotonic() + WAIT_S
        found = [
            one
            for each in asked
            for one in _series_of(each + span, closes + margin_s, given_up, stack, system)
        ]
        version, asked_for = stack.prometheus.version(), [each + span for each in asked]
        series.write(raw, (opens, closes), version, asked_for, found)
    except LabUnreachable as failure:
        return f"no series were stored: {failure}"
    if late:
        return f"Prometheus did not scrape past the window in time: {', '.join(late)}"
    return None


def _series_of(
    query: str, at: float, given_up: float, stack: Stack, system: System
) -> tuple[Series, ...]:
    """The series of a query. A Prometheus that is away is asked again, until `given_up`: it may
    come back with what it had. Raises LabUnreachable."""
    while True:
        try:
            return stack.prometheus.series(query, at)
        except LabUnreachable:
            if system.monotonic() >= given_up:
                raise
        system.sleep(POLL_S)


def _wait(
    server: str, jobs: Sequence[str], closes: float, stack: Stack, system: System
) -> tuple[str, ...]:
    """Wait until every one of the jobs has samples from `closes` or later, on each machine that it
    is on; those that do not."""
    given_up = system.monotonic() + WAIT_S
    asked = f'up{{job=~"{"|".join(jobs)}",server=~"{_escaped(server)}|"}}[2m]'
    while True:
        newest: dict[str, float] = {}
        # From a minute before it closes: a machine of which nothing has come since is among them.
        for up in _series_of(asked, closes + 60, given_up, stack, system):
            job, last = up.labels.get("job", ""), max(up.times_of(1.0), default=0.0)
            newest[job] = min(newest.get(job, last), last)
        late = [job for job in jobs if newest.get(job, 0.0) < closes]
        if "cadvisor" not in late and newest.get("cadvisor", closes) < closes + OLDER_S:
            # Of a container that is gone there is none, and OLDER_S is the end of its wait.
            query = f"{CONTAINERS}[{OLDER_S + 58:.0f}s]"
            read = _series_of(query, closes + 58, given_up, stack, system)
            if any(one.times[-1] < closes for one in read):
                late.append("cadvisor")
        if not late or system.monotonic() >= given_up:
            return tuple(late)
        system.sleep(POLL_S)
