"""The results of trials: a reading, its judgement and its row."""

from dataclasses import dataclass, fields
from datetime import datetime
from itertools import pairwise
from typing import overload

from lab.model.remark import Remark, remarks_in
from lab.model.trial import TrialRecord


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles in milliseconds. One is None where there were too few samples for it."""

    mean_ms: float
    p50_ms: float
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float

    def __post_init__(self) -> None:
        known = [v for v in (self.p50_ms, self.p95_ms, self.p99_ms, self.max_ms) if v is not None]
        # Engines round percentiles up to the end of a bucket, but not the maximum: 0.1 % slack.
        if any(a > b * 1.002 + 0.002 for a, b in pairwise(known)):
            raise ValueError(f"percentiles must not fall: {known}")
        if min(self.mean_ms, *known) < 0:
            raise ValueError("a latency is never negative")


@dataclass(frozen=True, slots=True)
class Counts:
    """Accounting of requests: sent = ok + http_errors + socket_errors + timeouts + unfinished.

    `accounted_s` is how many seconds of load the counts cover. Engines count their whole run,
    warm-up included.
    """

    sent: int | None
    ok: int | None
    http_errors: int | None
    socket_errors: int | None
    timeouts: int | None
    unfinished: int | None
    accounted_s: float | None

    def __post_init__(self) -> None:
        parts = (self.ok, self.http_errors, self.socket_errors, self.timeouts, self.unfinished)
        known = [part for part in parts if part is not None]
        if any(part < 0 for part in known):
            raise ValueError(f"a count is never negative: {self}")
        if self.sent is not None and (len(known) < len(parts) or self.sent != sum(known)):
            raise ValueError(f"sent must be the sum of its five parts: {self}")


@dataclass(frozen=True, slots=True)
class Second:
    """The answers of one second; `good` counts those without errors. `mean_ms` is the mean of their
    latencies, from when they were due in an open load, from when they were sent in a closed load;
    None without one."""

    answers: int
    good: int
    mean_ms: float | None


@dataclass(frozen=True, slots=True)
class Share:
    """How late one of several generators' machines was: `lag_ms` and `late` as of Reading."""

    machine: str
    lag_ms: float | None
    late: Latency | None


@dataclass(frozen=True, slots=True)
class Reading:
    """The figures of an engine's raw output about its measured window.

    `corrected` and `raw` are the latencies of the answers without an error: from when a request
    should have been sent (open only), and from when it was sent. `failed` are those of the others,
    from when they were sent; None where there were none, and where the engine does not tell them
    apart. Then `raw` and `corrected` have all answers, and are None where too many of these are
    errors (`engines.wrk2.MOST_MIXED`). `all_ms` is the mean time from sent to answer of all
    answers, with errors: None where that is the mean of `raw`.
    `ranks` are the latencies that count (`corrected` in an open load, else `raw`) as (ms, how many
    took at most so long), ascending; empty where the engine tells no single ones.
    `p50_error` … `p99_error` are the standard errors of the logarithms of these percentiles, by how
    they scatter from second to second; None where the engine tells no seconds.
    `lag_ms` is how late the generator itself was on average, where anything tells it.
    `late` is that of every request, exactly, and `due` is how many requests were due in the window
    (open only), where the engine keeps account of both (pacer). In a closed load a request is due
    when its connection has been answered: there `late` is the think time.
    `threads` is how many CPUs it can use at a time, where that may be less than it has.
    `pause_s` is the longest time in which the generator sends nothing by its own schedule: the
    count of a window may be off by that much of its rate.
    `window_ok` and `window_http_errors` count the answers in the window without and with a status
    above 399, or that is not as expected. They are None where the engine counts its whole run only
    (wrk2). `window_lost` is how many requests ended in it without an answer, None where the engine
    does not tell when that was.
    `unexpected` are those of window_http_errors that are not as a subject's `expect` says, whatever
    their status; None where it says nothing.
    `hangs`: as the window ended a request had waited for much longer than any answer took. Who
    waits so may never be answered. False where the engine does not tell.
    `seconds` are the seconds of the window; empty where the engine does not tell them.
    `dispersion` is the variance of how many requests were sent in 10 ms over their mean: 1 at
    random, more where they go out in waves. None where the engine does not tell it.
    `shares` are of each machine, where several put on the load.
    `began_s` is when the engine itself began, as Unix time, where it says so.
    `generator_run_s` and `generator_runq_s` are as those of `ThreadTimes`, of the engine's process;
    of several machines all of them. None where the engine does not tell them, and with spikes,
    whose extra load is another process'.
    `remarks` are what else the engine's output shows.
    """

    window_s: float
    samples: int
    achieved_rps: float
    corrected: Latency | None
    raw: Latency | None
    counts: Counts
    failed: Latency | None = None
    all_ms: float | None = None
    ranks: tuple[tuple[float, int], ...] = ()
    p50_error: float | None = None
    p95_error: float | None = None
    p99_error: float | None = None
    window_ok: int | None = None
    window_http_errors: int | None = None
    window_lost: int | None = None
    unexpected: int | None = None
    lag_ms: float | None = None
    late: Latency | None = None
    due: int | None = None
    threads: int | None = None
    hangs: bool = False
    pause_s: float = 0.0
    seconds: tuple[Second, ...] = ()
    dispersion: float | None = None
    shares: tuple[Share, ...] = ()
    began_s: float | None = None
    generator_run_s: float | None = None
    generator_runq_s: float | None = None
    remarks: tuple[Remark, ...] = ()

    def __post_init__(self) -> None:
        if self.window_s <= 0 or self.samples < 0:
            raise ValueError("a window is longer than zero, a count never negative")

    @property
    def answer_ms(self) -> float | None:
        """The mean time from sent to answer of all answers, with errors: the R of N = X·R. None
        without an answer."""
        return self.all_ms if self.all_ms is not None or self.raw is None else self.raw.mean_ms

    @property
    def in_flight(self) -> float:
        """How many requests were sent and not answered yet, on average (Little's law)."""
        return self.achieved_rps * (self.answer_ms or 0.0) / 1000


@dataclass(frozen=True, slots=True)
class Measurement:
    """A trial with its reading. `reading` is None where its raw data could not be read: `problem`
    is why."""

    record: TrialRecord
    reading: Reading | None
    problem: Remark | None = None

    def __post_init__(self) -> None:
        if self.reading is None and self.problem is None:
            raise ValueError("there is a reading, or a problem")


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a measurement may be believed. Notes tell what a reader must know about it.
    `others_cpu` is as of Row."""

    reasons: tuple[Remark, ...]
    notes: tuple[Remark, ...]
    others_cpu: float | None = None

    @property
    def valid(self) -> bool:
        return not self.reasons


@dataclass(frozen=True, slots=True)
class CpuSplit:
    """Who spent how much CPU on an answer in the window, in µs of CPU time per answered request.
    None where nobody can tell.

    `cpu_server_us` is the server's container, `cpu_proxy_us` Toxiproxy's, `cpu_downstream_us` the
    downstream's. `cpu_generator_us` is the engine's process. `cpu_observation_us` is Prometheus,
    cAdvisor, Grafana, the agent, and the driver beside its engine.
    """

    cpu_server_us: float | None = None
    cpu_proxy_us: float | None = None
    cpu_downstream_us: float | None = None
    cpu_generator_us: float | None = None
    cpu_observation_us: float | None = None

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        return tuple(field.name for field in fields(cls) if field.name.startswith("cpu_"))


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """Where the mean time of a request went in the window, in ms: parts that add up to what the
    client saw, from when a request was due. None where nobody can tell, and where there is no such
    part: the calls of a request that makes none.

    Each part but two is measured within one part of the lab, by its own clock:

    * `time_generator_ms`: by how much the generator itself sent late. A closed load's request is
      due when its connection is free
    * `time_connect_ms`: the wait for a connection of the load that is open and free, and for its
      place in the server's accept queue
    * `time_queue_ms`: from handed over to begun in the server; in event loops of the lab's from
      when the request was there, about. And until the thread that waits for the downstream's answer
      goes on: for how long that lay unread in a loop, and by how much a virtual thread is late
    * `time_own_ms`: the server's own: its work, and waits that the route is made of
    * `time_pending_ms`: the wait for a downstream connection
    * `time_downstream_ms`: the downstream's delay and lag

    `time_path_ms` is what two parts of the lab saw differently: a call of the server beyond the
    downstream's own time. It is the proxy with the network around it, and whatever neither sees.
    `time_unexplained_ms` is what the client saw beyond all
    parts. Below 0 where the parts are more than that.
    """

    time_generator_ms: float | None = None
    time_connect_ms: float | None = None
    time_queue_ms: float | None = None
    time_own_ms: float | None = None
    time_pending_ms: float | None = None
    time_path_ms: float | None = None
    time_downstream_ms: float | None = None
    time_unexplained_ms: float | None = None

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        return tuple(field.name for field in fields(cls) if field.name.startswith("time_"))

    @property
    def parts(self) -> tuple[float | None, ...]:
        return tuple(getattr(self, name) for name in TimeSplit.columns())

    @property
    def whole_ms(self) -> float:
        """The mean time as the client saw it: the sum of the parts."""
        return sum(part or 0.0 for part in self.parts)


@dataclass(frozen=True, slots=True)
class ThreadTimes:
    """How long the threads of each part ran on a CPU in the window (`…_run_s`), and how long they
    were ready to run and waited for one in the kernel's run queue (`…_runq_s`): seconds, summed
    over all threads of the part's process. Waits of threads overlap: they may be longer than the
    window, and are never divided by requests. None where it is not known.

    `server_runq_class` is the class of the server's threads (ThreadClasses.java) that waited
    longest, in sum; None where none waited.
    """

    server_run_s: float | None = None
    server_runq_s: float | None = None
    server_runq_class: str | None = None
    proxy_run_s: float | None = None
    proxy_runq_s: float | None = None
    downstream_run_s: float | None = None
    downstream_runq_s: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One row of trials.csv; the fields are its columns, in this order.

    * offered_rps: the rate offered (open); predicted_rps: the tightest hard bound before the run
    * achieved_rps: answers per second in the measured window, HTTP errors included
    * p50_ms … max_ms: of answers without an error, from when a request was due (open); raw_…: from
      when it was sent
    * sent = ok + http_errors + socket_errors + timeouts + unfinished, of accounted_s seconds:
      engines count their whole run, warm-up included
    * http_errors: answers above 399, and those that are not as a subject's `expect` says;
      unexpected: how many of these were in the window, empty without `expect`
    * socket_errors: requests whose connection was refused, reset or closed (only those that were
      sent; failed attempts are in a note)
    * valid, invalid_reasons (as `remark.cell_of` writes them); bottleneck: empty until judged;
      strength: strong or weak, empty until judged and for an unknown bottleneck
    * started_at, ended_at, window_s: the measured window
    * launch: which fresh JVM of its server, from 1; 0 is a JVM that ran already
    * arm: the name under which a server is compared with itself, or the name of its conditions (the
      case of a planted bottleneck, the part of a step of explain); empty without arms
    * expected_rps: the tightest of all bounds, estimates included; binding: its resource (or
      connections, or offered load); expected_p95_ms: the response time that follows from it
    * window_ok, window_http_errors, window_lost: of the measured window, ok, http_errors, and the
      socket errors and timeouts; empty where the engine counts them in its whole run only
    * duration_s, warmup_s: the lengths of window and warm-up as planned; an empty warm-up is what
      the engine needs
    * overloaded: whether fewer requests ended in the window than were offered, not counting those
      that may never be answered (open)
    * spun: the share of the machine's CPUs that a spinner took in the window (explain, planted);
      empty without one
    * cpu_…_us: CPU time per answered request in the window (`CpuSplit`)
    * time_…_ms: parts of the mean time of a request in the window (`TimeSplit`)
    * others_cpu: the share of the machine's CPUs that work outside the lab used in the window,
      where that left the lab too few; empty otherwise
    * due: how many requests were due in the window (open); empty where the engine does not tell
    * late_p99_ms, late_max_ms: by how much the generator itself sent late; empty as `due`, and the
      p99 where there were too few requests for it
    * think_ms: the mean think time Z of a closed load, X = N / (R + Z): from an answer until the
      generator has sent the connection's next request; empty as `due`
    * failed_mean_ms … failed_p95_ms: of answers with an error in the window, from when a request
      was sent; empty without any, and where the engine does not tell them apart
    * slo_p50_ms … slo_p99_ms: p50 to p99 (of a closed load the raw ones) where requests of the
      window without an answer count as slower than any answer; empty where it falls among these
    * p50_error … p99_error: the standard errors of the logarithms of these percentiles, by how they
      scatter from second to second of the window; empty where the engine tells no seconds
    * live_heap_bytes: what full collections left of the heap, after the load (endurance) or while
      its connections were held (density); resident_bytes: the process's memory in RAM then
    * host_busy, host_steal: shares of the host's CPU time in the window, without idle, I/O wait and
      steal, and the steal; ref_…: counts per second of CPU time just before the trial (`Ref`)
    * host: the short id of the machine (`lab.model.host_facts.host_id`)
    * host_pressure: the share of the window in which any thread of the machine waited for a CPU
    * …_run_s, …_runq_s, server_runq_class: `ThreadTimes`, and of the generator `Reading`
    """

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
        """Why it is invalid, one by one; none of a valid one."""
        return remarks_in(self.invalid_reasons)

    @property
    def codes(self) -> frozenset[str]:
        """The codes of its reasons."""
        return frozenset(reason.code for reason in self.reasons)

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        return tuple(field.name for field in fields(cls))


def around_server_us(of: CpuSplit | Row) -> float | None:
    """The CPU time of all parts of the lab around the server, in µs per answered request. None
    where one of them is not known."""
    parts = (of.cpu_proxy_us, of.cpu_downstream_us, of.cpu_generator_us, of.cpu_observation_us)
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def answered(of: Reading | Row) -> tuple[int, int]:
    """Answers without and with an HTTP error: of the window where the engine tells them, else of
    its whole run, warm-up included (wrk2)."""
    if of.window_ok is not None and of.window_http_errors is not None:
        return of.window_ok, of.window_http_errors
    counts = _counts(of)
    return counts.ok or 0, counts.http_errors or 0


def lost_rps(of: Reading | Row, offered_rps: int | None) -> float:
    """Requests per second that got no answer (socket errors and timeouts) in the window.

    Where the engine does not say when an error happened, this is the mean of the whole run. In an
    open load (`offered_rps`) that is at most the rate that was offered and not answered, as an
    engine may send a request again. 0 where the engine tells none.
    """
    if of.window_lost is not None and of.window_s:
        return of.window_lost / of.window_s
    accounted_s = _counts(of).accounted_s
    lost = _lost(of) / accounted_s if accounted_s else 0.0
    return _at_most(lost, offered_rps, of.achieved_rps or 0.0)


def error_share(of: Reading | Row, offered_rps: int | None) -> float:
    """The share of HTTP errors, socket errors and timeouts among all requests that ended, 0..1.

    It is that of the window where the engine counts its answers there, else that of the whole run.
    As many requests count as lost as `lost_rps` says, also in an open load (`offered_rps`). Those
    that the engine cannot count are left out.
    """
    ok, errors = answered(of)
    if of.window_ok is not None:
        lost = lost_rps(of, offered_rps) * (of.window_s or 0.0)
    else:
        offered = (offered_rps or 0) * (_counts(of).accounted_s or 0.0)
        lost = _at_most(_lost(of), offered or None, ok + errors)
    bad = errors + lost
    return bad / (bad + ok) if bad else 0.0


def good_share(of: Reading | Row) -> float:
    """The share of the answers without errors, 0..1. Goodput is this share of `achieved_rps`.
    Requests that timed out or lost their socket are no answers. It is that of the window where the
    engine tells it, else that of the whole run."""
    ok, errors = answered(of)
    return ok / (ok + errors) if errors else 1.0


@overload
def goodput(of: Reading) -> float: ...
@overload
def goodput(of: Row) -> float | None: ...
def goodput(of: Reading | Row) -> float | None:
    """Answers per second without errors. Requests that timed out or lost their socket are no
    answers. None where nobody can tell."""
    return None if of.achieved_rps is None else of.achieved_rps * good_share(of)


def offered(row: Row) -> float | None:
    """The rate that an open load offered in its window: where it is known how many requests were
    due, those, as arrivals at random are never just as many as planned. None in a closed load."""
    if row.due is None or not row.window_s:
        return row.offered_rps
    return row.due / row.window_s


def p95_of(row: Row) -> float | None:
    """The p95 in ms that counts: corrected in an open load, raw in a closed one."""
    return row.p95_ms if row.mode == "open" else row.raw_p95_ms


def _counts(of: Reading | Row) -> Counts | Row:
    return of.counts if isinstance(of, Reading) else of


def _at_most(lost: float, offered: float | None, answers: float) -> float:
    return lost if offered is None else min(lost, max(0.0, offered - answers))


def _lost(of: Reading | Row) -> int:
    counts = _counts(of)
    return (counts.socket_errors or 0) + (counts.timeouts or 0)
