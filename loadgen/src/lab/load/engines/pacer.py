"""pacer, the lab's own engine: exact, on any machine, open and closed load (go/pacer).

It gets the load on standard input (`load.json` has it without secrets), and writes a line of JSON a
second (`pacer.jsonl`, then gzipped), of the whole run, warm-up included:

* Every request is accounted for: due (open) or sent (closed) = ok + HTTP errors + socket errors +
  timeouts + unfinished.
* An answer, an error and a timeout belong to the second in which they happened, so the window is
  exact.
* `raw` and `corrected` are the latencies of answers without an error, `failed` those of the
  others, from when they were sent: a quick refusal is no quick answer.
* `late` is how long the generator took to send a request that was due on a free connection. In a
  closed load that is the think time Z of the interactive response time law, X = N / (R + Z).
* A connection that could not be opened is no request. If the generator itself had no port or
  descriptor left for it, the generator was the limit.
* On several machines each has a share of the load (`pacer spread`). The lines are then those of all
  added up, and `pacer-<machine>.jsonl` has those of each, by which it is judged.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import replace
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lab.errors import RawDataError
from lab.judge.capacity import NEAR
from lab.judge.checks import data
from lab.judge.predict import PLANNED_LATENCIES
from lab.judge.slo import SHARES
from lab.load.engines.base import (
    REQUEST_TIMEOUT_S,
    Engine,
    Schedule,
    last_line,
    peak_folder,
    printed,
)
from lab.load.engines.histogram import Histogram, log_errors
from lab.load.engines.pacer_output import (
    OUTPUT,
    PACKED,
    Line,
    Output,
    is_whole,
    output_in,
    pack,
    read_output,
)
from lab.load.engines.pacer_reading import own_limits, reading_of, spike_remarks
from lab.model import Peak, Reading, Share, TrialPlan, needed_samples
from lab.store.records import json_text, to_json

LOAD = "load.json"
# Of each machine of several: its name is between these.
SHARE, PLAIN = "pacer-", ".jsonl"
# Connections open evenly in half of the warm-up, or at this pace if that is sooner done: a proxy
# that sets 4,000 up at once makes some of them wait for seconds.
CONNECT_PER_S = 2000
LEAST_OPENING_S = 1.0
MOST_WARMUP_S = 10
# What Prometheus shows of a moment looks back so far (prometheus/rules): after a warm-up that is
# shorter than this and the opening, it would show an even load as one that rises.
LOOK_BACK_S = 6
# One event loop sends more than the rest of so many CPUs can answer; a request costs least in one.
CPUS_PER_LOOP = 4
# An open load has no more loops than its rate needs, as pacer itself chooses (run.go). One loop
# cannot send on another one's connections, so of several some requests wait while connections are
# free.
OPEN_PER_LOOP_RPS = 20_000
# A connection that is held waits for its answer so much longer than the run.
HELD_S = 60
# A window that may end early is looked at whenever so many seconds have passed. It ends when all
# latencies are far from their limits, and from the second look on when their standard errors are
# at most this share of them.
LEAST_WINDOW_S, SETTLED = 5, 0.03
# No run has so many launches, so no two trials of a load have one seed.
DRAWS = 1000


@dataclass(frozen=True, slots=True)
class Pacer(Engine):
    """The command `pacer`. `others` put a share of the load on, HOST:PORT (`pacer serve`)."""

    others: tuple[str, ...] = ()
    name: str = "pacer"

    def version(self) -> str | None:
        lines = printed(("pacer", "--version")).splitlines()
        return next((line for line in lines if line.startswith("pacer ")), None)

    def schedule(self, plan: TrialPlan, raw: Path) -> Schedule:
        warm_up_s = usual_warm_up_s(plan) if plan.warmup_s is None else plan.warmup_s
        stored = replace(plan, requests=tuple(request.stored for request in plan.requests))
        spread = ("spread", str(raw / LOAD), *self.others)
        return Schedule(
            argv=("pacer", *(spread if self.others else ("-",))),
            output=OUTPUT,
            run_s=warm_up_s + plan.duration_s,
            window_offset_s=warm_up_s,
            window_s=plan.duration_s,
            files={LOAD: json_text(load_of(stored, warm_up_s, raw))},
            stdin=json_text(load_of(plan, warm_up_s, raw)),
            streams=True,
        )

    def read(self, plan: TrialPlan, raw: Path) -> Reading:
        # What a machine wrote that did not come to its end stays as it is.
        shares = [path for path in sorted(raw.glob(f"{SHARE}*{PLAIN}")) if is_whole(path)]
        for plain in (raw / OUTPUT, *shares):
            if plain.exists():
                pack(plain)
        output = _whole(plan, raw)
        reading = reading_of(plan, output, _window(plan, output))
        numbers = range(1, plan.spike.repeats + 1) if plan.spike else ()
        peaks = [(number, self.peak(raw, number, Peak(0, 0))) for number in numbers]
        return replace(
            reading,
            threads=loops_for(plan) + plan.url.startswith("https:"),
            shares=tuple(_shares(plan, raw, output)),
            began_s=output.head.unix_s,
            remarks=(*reading.remarks, *spike_remarks(plan, peaks)),
        )

    def seconds(self, plan: TrialPlan, raw: Path) -> tuple[Line, ...]:
        """Every second of the run, warm-up included. Raises RawDataError."""
        return _whole(plan, raw).seconds

    def settled_s(self, plan: TrialPlan, opens_s: float, seconds: Sequence[Line]) -> int | None:
        """How many seconds show on which side of its limits each latency of the plan is, or what it
        is to SETTLED. Several machines end together only at their time."""
        window = seconds[round(opens_s) :]
        # It costs CPU time that the server may need, so it is done now and then.
        if self.others or not window or len(window) % LEAST_WINDOW_S:
            return None
        latencies = [line.counted for line in window]
        whole = Histogram.sum_of(latencies)
        shares = [SHARES.get(name, 1.0) for name in plan.limits]
        if whole.count < max(needed_samples(min(share, SHARES["p99"])) for share in shares):
            return None
        if len(window) < PLANNED_LATENCIES * whole.sum_us / whole.count / 1e6:
            return None
        errors = log_errors(latencies, shares)
        for limits_ms, share, error in zip(plan.limits.values(), shares, errors, strict=True):
            took_ms = whole.at_ms(share)
            away = min(abs(math.log(took_ms / limit_ms)) for limit_ms in limits_ms)
            known = error <= SETTLED and len(window) >= 2 * LEAST_WINDOW_S
            if not known and not away - 2 * error > NEAR:
                return None
        return len(window)

    def peak(self, raw: Path, number: int, peak: Peak) -> Peak:
        """It began when its own pacer began to put load on, and not when that was started."""
        path = output_in(peak_folder(raw, number))
        if path is None:
            return peak
        try:
            output = read_output(path)
        except RawDataError as failure:
            return replace(peak, problems=(data.damaged.remark(problem=failure.said),))
        seconds, run_s = output.seconds, output.end.run_s
        late = Histogram.sum_of(line.late for line in seconds).latency()
        peak_began_s, trial_began_s = output.head.unix_s, _began_s(raw)
        if peak_began_s is not None and trial_began_s is not None:
            started_s = round(peak_began_s - trial_began_s, 3)
            ended_s = max(peak.ended_s, round(started_s + run_s, 3))
            peak = replace(peak, started_s=started_s, ended_s=ended_s)
        untried = sum(line.untried * line.length_s for line in seconds)
        return replace(
            peak,
            connections=max((line.connections for line in seconds), default=None),
            untried=untried / run_s if run_s else None,
            due=output.end.due if any(line.corrected for line in seconds) else None,
            sent=output.end.sent,
            late_p95_ms=late.p95_ms if late else None,
            problems=tuple(own_limits(seconds)),
        )


def _began_s(raw: Path) -> float | None:
    path = output_in(raw)
    with suppress(RawDataError):
        return read_output(path).head.unix_s if path else None
    return None


def loops_for(plan: TrialPlan) -> int:
    """In how many event loops it runs, each a thread. What speaks TLS runs beside them."""
    most = min(plan.concurrency, max(1, plan.cores // CPUS_PER_LOOP))
    if plan.offered_rps is None:
        return most
    return min(most, max(1, math.ceil(plan.offered_rps / OPEN_PER_LOOP_RPS)))


def _opening_s(plan: TrialPlan) -> float:
    """How long its connections take to open, given the time."""
    return max(LEAST_OPENING_S, plan.concurrency / CONNECT_PER_S)


def usual_warm_up_s(plan: TrialPlan) -> int:
    """Its connections open, and what looks back from the window sees them open."""
    return min(MOST_WARMUP_S, math.ceil(_opening_s(plan)) + LOOK_BACK_S)


def load_of(plan: TrialPlan, warm_up_s: float, raw: Path) -> dict[str, Any]:
    """The load as pacer reads it, by its keys (go/pacer/load.go)."""
    opening_s = min(warm_up_s / 2, _opening_s(plan))
    load: dict[str, Any] = {
        "connections": plan.concurrency,
        "loops": loops_for(plan),
        "warmup_s": warm_up_s,
        "window_s": plan.duration_s,
        "arrivals": plan.arrivals if plan.mode == "open" else "closed",
        # Without a warm-up, all at once: a crowd.
        "connect_per_s": math.ceil(plan.concurrency / opening_s) if opening_s else 0,
        "timeout_s": REQUEST_TIMEOUT_S,
        # The same arrivals for all servers of a launch, and others in its next trial of this load.
        "seed": 1 + plan.launch + DRAWS * plan.draw,
        "requests": list(_requests(plan)),
        # Whoever answers may have a load that holds no secret.
        "insecure": not any(request.secrets for request in plan.requests),
        "hlog": str(raw),
    }
    if plan.hold:
        # What is in flight waits until the end.
        return {**load, "once": True, "timeout_s": warm_up_s + plan.duration_s + HELD_S}
    return load if plan.offered_rps is None else {**load, "rate": plan.offered_rps}


def _requests(plan: TrialPlan) -> Iterator[dict[str, Any]]:
    host = urlsplit(plan.url)
    for request in plan.requests:
        keys = {**to_json(request), "headers": dict(request.headers)}
        expect = keys.pop("expect")
        if request.expect:
            keys["expect"] = {**expect, "status": request.expect.statuses or None}
        yield {"url": f"{host.scheme}://{host.netloc}{keys.pop('path')}", **keys}
    if not plan.requests:
        yield {"method": "GET", "url": plan.url, "headers": {}, "body": "", "weight": 1}


def _whole(plan: TrialPlan, raw: Path) -> Output:
    """The output of a run that came to its planned end. Raises RawDataError."""
    path = raw / PACKED
    if not path.exists():
        words = last_line(raw / OUTPUT, "and said nothing")
        raise RawDataError(path, None, f"pacer wrote no result: {words}")
    output = read_output(path)
    planned_s = _opens_s(plan, output) + plan.duration_s
    # The second in which it was ended is none: what is planned must come before it. Of several
    # machines only whole seconds are added up.
    seconds, end = output.seconds, output.end
    cut = end.ended != "complete" and seconds and seconds[-1].length_s < 1
    if len(seconds) - bool(cut) < planned_s:
        problem = f"{end.ended} after {end.run_s:.1f} of {planned_s:.0f} s"
        raise RawDataError(path, None, f"the load did not run to its end: {problem}")
    if plan.mode == "open" and any(line.corrected is None for line in seconds):
        raise RawDataError(path, None, "has no corrected latencies, and the load was open")
    return output


def _opens_s(plan: TrialPlan, output: Output) -> float:
    """When the window began, as the run was given it."""
    if plan.warmup_s is not None:
        return plan.warmup_s
    return output.head.load.warmup_s if output.head.load else usual_warm_up_s(plan)


def _window(plan: TrialPlan, output: Output) -> Sequence[Line]:
    first = round(_opens_s(plan, output))
    return output.seconds[first : first + plan.duration_s]


def _shares(plan: TrialPlan, raw: Path, whole: Output) -> Iterator[Share]:
    """How late each machine of several was; none of a load that was ended before its time. Raises
    RawDataError unless they add up."""
    paths = sorted(raw.glob(f"{SHARE}*{PLAIN}.gz")) if whole.end.ended == "complete" else []
    sent = 0
    for path in paths:
        output = read_output(path)
        sent += output.end.sent
        late = Histogram.sum_of(line.late for line in _window(plan, output))
        name = path.name.removeprefix(SHARE).removesuffix(f"{PLAIN}.gz")
        yield Share(name, late.mean_ms, late.latency())
    if paths and sent != whole.end.sent:
        problem = f"{sent} requests were sent by its machines, {whole.end.sent} in all"
        raise RawDataError(raw / PACKED, None, problem)
