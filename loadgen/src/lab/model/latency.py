"""An engine's reading of a window: latencies and counts."""

from itertools import pairwise

from lab.model.record import Record
from lab.model.remark import Remark

# A percentile stands on the samples beyond it; with fewer than this many it is chance. The spread
# of a sample quantile falls with the square root of that number (order statistics: H. A. David,
# H. N. Nagaraja, "Order Statistics", 2003, section 7.1).
LEAST_BEYOND = 10


def needed_samples(percentile: float) -> int:
    """How many samples leave LEAST_BEYOND above the percentile (0..1)."""
    return round(LEAST_BEYOND / (1 - percentile))


class Latency(Record):
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


class Counts(Record):
    """Accounting of requests: sent = ok + http_errors + socket_errors + timeouts + unfinished, in
    `accounted_s` seconds of load. Engines count their whole run, warm-up included."""

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


class Second(Record):
    """The answers of one second; `good` counts those without errors. `mean_ms` is the mean of their
    latencies, from when they were due in an open load, from when they were sent in a closed load;
    None without one."""

    answers: int
    good: int
    mean_ms: float | None


class Share(Record):
    """How late one of several generators' machines was: `lag_ms` and `late` as of Reading."""

    machine: str
    lag_ms: float | None
    late: Latency | None


class Reading(Record):
    """The figures of an engine's raw output about its measured window. None: the engine does not
    tell.

    * `corrected` and `raw` are the latencies of the answers without an error: from when a request
      should have been sent (open only), and from when it was sent. `failed` are those of the
      others, from when they were sent. Where the engine does not tell these apart, `raw` and
      `corrected` have all answers, and are None where too many of them are errors
      (`engines.wrk2.MOST_MIXED`). `all_ms` is the mean time from sent to answer of all answers,
      with errors: None where that is the mean of `raw`
    * `ranks` are the latencies that count (`corrected` in an open load, else `raw`) as (ms, how
      many took at most so long), ascending; empty where the engine tells no single ones
    * `p50_error` … `p99_error` are the standard errors of the logarithms of these percentiles, by
      how they scatter from second to second
    * `window_ok` and `window_http_errors` count the answers in the window without and with a status
      above 399, or that is not as expected; `unexpected` are those of the latter that are not as a
      subject's `expect` says, whatever their status. `window_lost`: how many requests ended in it
      without an answer
    * `lag_ms` is how late the generator itself was on average; `late` that of every request,
      exactly, and `due` how many requests were due in the window (open only), where the engine
      keeps account of both (pacer). In a closed load a request is due when its connection has been
      answered: there `late` is the think time
    * `threads` is how many CPUs it can use at a time, where that may be less than it has
    * `hangs`: as the window ended a request had waited for much longer than any answer took. Who
      waits so may never be answered
    * `pause_s` is the longest time in which the generator sends nothing by its own schedule: the
      count of a window may be off by that much of its rate
    * `dispersion` is the variance of how many requests were sent in 10 ms over their mean: 1 at
      random, more where they go out in waves
    * `shares` are of each machine, where several put on the load
    * `began_s` is when the engine itself began, as Unix time
    * `generator_run_s` and `generator_runq_s` are as those of `ThreadTimes`, of the engine's
      process; of several machines all of them. None with spikes, whose extra load is another
      process'
    * `remarks` are what else the engine's output shows
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
