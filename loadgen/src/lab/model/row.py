"""The result of a trial: its judgement, where time and CPU went, and its row."""

from datetime import datetime
from typing import overload

from msgspec.structs import astuple

from lab.model.latency import Counts, Reading
from lab.model.record import Record, sum_or_none
from lab.model.remark import Remark, remarks_in
from lab.model.trial import TrialRecord


class Measurement(Record):
    """A trial with its reading. `reading` is None where its raw data could not be read: `problem`
    is why."""

    record: TrialRecord
    reading: Reading | None
    problem: Remark | None = None


class Judgement(Record):
    """Why a measurement may not be believed (`reasons`), and what a reader must know about it
    (`notes`). `others_cpu` is as of Row."""

    reasons: tuple[Remark, ...]
    notes: tuple[Remark, ...]
    others_cpu: float | None = None

    @property
    def valid(self) -> bool:
        return not self.reasons


class CpuSplit(Record):
    """CPU time per answered request in the window (docs/columns.md). None if unknown."""

    cpu_server_us: float | None = None
    cpu_proxy_us: float | None = None
    cpu_downstream_us: float | None = None
    cpu_generator_us: float | None = None
    cpu_observation_us: float | None = None


class TimeSplit(Record):
    """Where the mean time of a request went in the window, in ms (docs/columns.md). The parts add
    up to what the client saw, from when a request was due. Each but two is measured within one part
    of the lab, by its own clock: `time_path_ms` is what two parts saw differently, and
    `time_unexplained_ms` what the client saw beyond all parts, below 0 if that is less. None if
    unknown, or where a request has no such part."""

    time_generator_ms: float | None = None
    time_connect_ms: float | None = None
    time_queue_ms: float | None = None
    time_own_ms: float | None = None
    time_pending_ms: float | None = None
    time_path_ms: float | None = None
    time_downstream_ms: float | None = None
    time_unexplained_ms: float | None = None

    @property
    def parts(self) -> tuple[float | None, ...]:
        return astuple(self)

    @property
    def whole_ms(self) -> float:
        """The mean time as the client saw it: the sum of the parts."""
        return sum(part or 0.0 for part in self.parts)


class ThreadTimes(Record):
    """How long the threads of each part ran on a CPU in the window (`…_run_s`), and how long they
    were ready to run and waited for one in the kernel's run queue (`…_runq_s`): seconds over all
    threads of the part's process, so waits may be longer than the window. `server_runq_class` is
    the class of the server's threads (ThreadClasses.java) that waited longest. None if unknown."""

    server_run_s: float | None = None
    server_runq_s: float | None = None
    server_runq_class: str | None = None
    proxy_run_s: float | None = None
    proxy_runq_s: float | None = None
    downstream_run_s: float | None = None
    downstream_runq_s: float | None = None


class Row(Record):
    """One row of trials.csv; the fields are its columns, in this order, and docs/columns.md says
    what each means. `expected_…` and `predicted_rps` are from before the run. `invalid_reasons` are
    as `remark.cell_of` writes them."""

    run: str
    trial: str
    server: str
    route: str
    engine: str
    mode: str
    concurrency: int
    offered_rps: int | None
    predicted_rps: float | None
    achieved_rps: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float | None
    raw_p50_ms: float | None
    raw_p95_ms: float | None
    raw_p99_ms: float | None
    raw_max_ms: float | None
    sent: int | None
    ok: int | None
    http_errors: int | None
    socket_errors: int | None
    timeouts: int | None
    unfinished: int | None
    valid: bool
    invalid_reasons: str
    bottleneck: str | None
    strength: str | None
    started_at: datetime | None
    ended_at: datetime | None
    window_s: float | None
    accounted_s: float | None
    launch: int = 0
    arm: str | None = None
    expected_rps: float | None = None
    expected_p95_ms: float | None = None
    binding: str | None = None
    window_ok: int | None = None
    window_http_errors: int | None = None
    window_lost: int | None = None
    duration_s: int | None = None
    warmup_s: int | None = None
    overloaded: bool | None = None
    spun: float | None = None
    cpu_server_us: float | None = None
    cpu_proxy_us: float | None = None
    cpu_downstream_us: float | None = None
    cpu_generator_us: float | None = None
    cpu_observation_us: float | None = None
    time_generator_ms: float | None = None
    time_connect_ms: float | None = None
    time_queue_ms: float | None = None
    time_own_ms: float | None = None
    time_pending_ms: float | None = None
    time_path_ms: float | None = None
    time_downstream_ms: float | None = None
    time_unexplained_ms: float | None = None
    others_cpu: float | None = None
    unexpected: int | None = None
    due: int | None = None
    late_p99_ms: float | None = None
    late_max_ms: float | None = None
    think_ms: float | None = None
    failed_mean_ms: float | None = None
    failed_p50_ms: float | None = None
    failed_p95_ms: float | None = None
    slo_p50_ms: float | None = None
    slo_p95_ms: float | None = None
    slo_p99_ms: float | None = None
    p50_error: float | None = None
    p95_error: float | None = None
    p99_error: float | None = None
    live_heap_bytes: int | None = None
    resident_bytes: int | None = None
    host_busy: float | None = None
    host_steal: float | None = None
    ref_compute: float | None = None
    ref_compute_all: float | None = None
    ref_wake: float | None = None
    ref_net: float | None = None
    host: str | None = None
    host_pressure: float | None = None
    server_run_s: float | None = None
    server_runq_s: float | None = None
    server_runq_class: str | None = None
    proxy_run_s: float | None = None
    proxy_runq_s: float | None = None
    downstream_run_s: float | None = None
    downstream_runq_s: float | None = None
    generator_run_s: float | None = None
    generator_runq_s: float | None = None

    @property
    def reasons(self) -> tuple[Remark, ...]:
        return remarks_in(self.invalid_reasons)

    @property
    def codes(self) -> frozenset[str]:
        return frozenset(reason.code for reason in self.reasons)


def around_server_us(figures: CpuSplit | Row) -> float | None:
    """The CPU time of all parts of the lab around the server, in µs per answered request."""
    columns = (name for name in CpuSplit.columns() if name != "cpu_server_us")
    return sum_or_none(getattr(figures, name) for name in columns)


def answered(figures: Reading | Row) -> tuple[int, int]:
    """Answers without and with an HTTP error: of the window where the engine tells them, else of
    its whole run, warm-up included (wrk2)."""
    if figures.window_ok is not None and figures.window_http_errors is not None:
        return figures.window_ok, figures.window_http_errors
    counts = _counts(figures)
    return counts.ok or 0, counts.http_errors or 0


def lost_rps(figures: Reading | Row, offered_rps: int | None) -> float:
    """Requests per second that got no answer (socket errors and timeouts) in the window.

    Of an engine that does not say when an error happened this is the mean of the whole run; in an
    open load (`offered_rps`) at most the rate that was offered and not answered, as an engine may
    send a request again.
    """
    if figures.window_lost is not None and figures.window_s:
        return figures.window_lost / figures.window_s
    accounted_s = _counts(figures).accounted_s
    lost = _lost(figures) / accounted_s if accounted_s else 0.0
    return _at_most(lost, offered_rps, figures.achieved_rps or 0.0)


def error_share(figures: Reading | Row, offered_rps: int | None) -> float:
    """The share of HTTP errors and lost requests (`lost_rps`) among all requests that ended, 0..1,
    of the window if the engine counts its answers there, else of the whole run."""
    ok, errors = answered(figures)
    if figures.window_ok is not None:
        lost = lost_rps(figures, offered_rps) * (figures.window_s or 0.0)
    else:
        offered = (offered_rps or 0) * (_counts(figures).accounted_s or 0.0)
        lost = _at_most(_lost(figures), offered or None, ok + errors)
    bad = errors + lost
    return bad / (bad + ok) if bad else 0.0


def good_share(figures: Reading | Row) -> float:
    """The share of the answers without errors, 0..1."""
    ok, errors = answered(figures)
    return ok / (ok + errors) if errors else 1.0


@overload
def goodput(figures: Reading) -> float: ...
@overload
def goodput(figures: Row) -> float | None: ...
def goodput(figures: Reading | Row) -> float | None:
    """Answers per second without errors. Requests that timed out or lost their socket are no
    answers."""
    return None if figures.achieved_rps is None else figures.achieved_rps * good_share(figures)


def offered(row: Row) -> float | None:
    """The rate that an open load offered in its window: by the requests that were due, if known, as
    random arrivals are never just as many as planned."""
    if row.due is None or not row.window_s:
        return row.offered_rps
    return row.due / row.window_s


def p95_of(row: Row) -> float | None:
    """The p95 in ms that counts: corrected in an open load, raw in a closed one."""
    return row.p95_ms if row.mode == "open" else row.raw_p95_ms


def _counts(figures: Reading | Row) -> Counts | Row:
    return figures.counts if isinstance(figures, Reading) else figures


def _at_most(lost: float, offered: float | None, answers: float) -> float:
    return lost if offered is None else min(lost, max(0.0, offered - answers))


def _lost(figures: Reading | Row) -> int:
    counts = _counts(figures)
    return (counts.socket_errors or 0) + (counts.timeouts or 0)
