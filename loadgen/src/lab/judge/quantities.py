"""What several checks, the row and the verdict compute of a trial: rates, shares and tolerances."""

import math

from lab.judge.cpu_split import USED, machine_cpus
from lab.judge.predict import response_spread
from lab.model import Observation, Reading, Snapshot, TrialRecord, good_share, lost_rps
from lab.model.routes import RouteCall, parse

# An open trial has kept up when requests ended at this share of the offered rate.
KEPT_UP = 0.99
# With more than this share of the connections busy, the server kept them busy. With less, requests
# were due and connections were free, so the generator did not send. The share is lowered by one
# latency per window: an answer that the window's edge cuts off counts nowhere.
BUSY_CONNECTIONS = 0.9
# Beyond this share of the median raw latency the generator measures itself. This holds for how late
# it sends, and for how long it waits for a CPU before it can send or read an answer. The corrected
# latency is no measure for it: in an overloaded load it is many seconds, and grows with the window.
LAG_SHARE = 0.1
LEAST_LAG_MS = 1.0
# From this share of a closed load's cycle on a reader should know of the generator's think time.
LEAST_SHARE = 0.02
# CPUs this busy on average are full in bursts: requests wait for a CPU, and clocks that run on
# during these waits (pauses, calls) show more than was worked.
HOST_CROWDED = 0.8
# The host's CPUs are full from this share on.
HOST_FULL = 0.95
# A CPU quota may stop a part of the lab for at most this share of the window.
THROTTLED = 0.01
# A reader should know where the generator waited for a CPU for this share of its cores' time.
WAITED = 0.2
# By so much of those in flight, or in a queue, the count of a window may be off without a finding.
MOST_RISE = 0.1
# A part that used this share of the CPUs it may use was at its limit.
PART_CPU = 0.95
# The metric of how many CPUs a part uses at most, by its job: each of the downstream's loops uses
# one, of however many its runtime may use.
CPUS = {"downstream": "lab_downstream_loops", "toxiproxy": "go_sched_gomaxprocs_threads"}
# Where the CPUs are short, a rate that they limit is lower by the share that others use. On a quiet
# machine 2 to 9 % of two CPUs were nobody's in the lab: the kernel, Docker, its host.
OTHERS = 0.15
# Other machines take CPU time only while this one wants it, so what they take is short at that
# moment, however idle the CPUs are on average. In a search near a pool's capacity, seven seconds of
# that (0.15 of the window) let goodput fall by 2 %.
STOLEN = 0.1
# A window has at least so many mean latencies. In a shorter one the edges hold more of the answers
# than the middle, and Little's law can hardly fail. A latency may prove longer than expected, so
# windows are planned to have more.
LEAST_LATENCIES = 4.5
PLANNED_LATENCIES = 5.5


def connections_busy(record: TrialRecord, reading: Reading) -> float | None:
    """The share of connections with a request in flight, by Little's law."""
    return None if reading.answer_ms is None else reading.in_flight / record.plan.concurrency


def ended_rps(record: TrialRecord, reading: Reading) -> float:
    """Requests per second that ended, with an answer or without one (socket errors, timeouts). All
    of them were sent. Requests that the engine cannot count are left out."""
    return reading.achieved_rps + lost_rps(reading, record.plan.offered_rps)


def offered_rps(record: TrialRecord, reading: Reading) -> float | None:
    """The rate that was offered in the window: what was due in it where the engine counts that, as
    arrivals at random are never just as many as planned. None for a closed load."""
    planned = record.plan.offered_rps
    if planned is None or reading.due is None:
        return planned
    return reading.due / reading.window_s


def overloaded(record: TrialRecord, reading: Reading) -> bool:
    """Whether fewer requests ended than were offered, by more than the edges of the window, and
    those that may never be answered, explain."""
    return _fell_behind(record, reading, unanswered(record, reading))


def _fell_behind(record: TrialRecord, reading: Reading, more: int = 0) -> bool:
    """Whether fewer than were offered ended, with so many more than are counted."""
    offered = offered_rps(record, reading)
    if offered is None:
        return False
    ended = ended_rps(record, reading) + more / reading.window_s
    return ended < (KEPT_UP - edges(record, reading)) * offered


def unanswered(record: TrialRecord, reading: Reading) -> int:
    """How many requests of an open load may never be answered: those due in the window less those
    that ended in it, if that is more than chance (`edges`), a pause of the engine, a rise of the
    latency by MOST_RISE and a queue (`_queued`) explain, and some request waits (`hangs`).

    An engine gives up on a request after many seconds, so a short run counts none that is never
    answered. 0 if requests waited on purpose (spikes, scripts), or if their number is unknown.
    """
    if reading.due is None or reading.answer_ms is None or not reading.hangs:
        return 0
    queued = _queued(record, reading)
    if record.peaks or record.plan.script or (queued is None and _fell_behind(record, reading)):
        return 0
    left = reading.due - reading.samples - (reading.window_lost or 0) - (queued or 0)
    in_flight = reading.in_flight
    paused = reading.pause_s * reading.due / reading.window_s
    rise = MOST_RISE * (in_flight + (queued or 0))
    return left if left > 3 * math.sqrt(2 * in_flight) + paused + rise else 0


def _queued(record: TrialRecord, reading: Reading) -> int | None:
    """By how many requests a first-come-first-served queue grew in the window: answers of its last
    second waited longer than those of its first, and as many requests as came meanwhile are behind
    (Little's law). None if unknown, and for requests of several kinds, whose queues may differ."""
    means = [second.mean_ms for second in reading.seconds if second.mean_ms is not None]
    if len(means) < 2 or reading.due is None or len(record.plan.requests) > 1:
        return None
    # These are means of seconds, so they are a second less apart than the window's ends.
    longer_s = max(0.0, means[-1] - means[0]) / 1000 * len(means) / (len(means) - 1)
    return round(longer_s * reading.due / reading.window_s)


def drawn_call(record: TrialRecord) -> RouteCall | None:
    """What a request calls, where a drawn delay may be part of it."""
    drawn = record.before.spread is not None and not record.before.foreign
    return parse(record.plan.route) if drawn else None


def edges(record: TrialRecord, reading: Reading) -> float:
    """By what share of an open load's requests the count of its window may be off, for what its
    edges cut off: by the engine's pauses, and by chance where arrivals or delays are random. Then
    as many are in flight at each edge as chance wants: λR on average, with a standard deviation of
    at most √(λR) where nothing queues (the number in an M/G/∞ system is Poisson: W. Feller, An
    Introduction to Probability Theory, vol. 1, 1968, XVII.7). Three deviations of the difference of
    two edges are allowed."""
    pause_s, call, offered = reading.pause_s, drawn_call(record), offered_rps(record, reading)
    random = record.plan.arrivals != "constant" or (call and call.route.calls_downstream)
    if random and offered:
        pause_s = max(pause_s, 3 * math.sqrt(2 * reading.in_flight) / offered)
    return pause_s / reading.window_s


def crossing_s(latency_s: float, call: RouteCall | None, snapshot: Snapshot) -> float:
    """The mean latency of the requests that are under way at an edge of the window, where that of
    all is `latency_s`. Long ones are met more often: it is E[R²] / E[R] = E[R] + Var(R) / E[R]
    (W. Feller, An Introduction to Probability Theory and Its Applications 2, 1971, I.4). Only the
    variance of a drawn delay counts. `call` None: a route of a service that is not the lab's."""
    spread = response_spread(call, snapshot) if call is not None else None
    if spread is None or latency_s <= 0:
        return latency_s
    return latency_s + (spread.sd_ms / 1000) ** 2 / latency_s


def trial_crossing_s(record: TrialRecord, latency_s: float) -> float:
    """As `crossing_s`, of a trial."""
    return crossing_s(latency_s, drawn_call(record), record.before)


def needed_window_s(latency_s: float, call: RouteCall | None, snapshot: Snapshot) -> int:
    """How long a window this mean latency needs, in whole seconds. `call` as of `crossing_s`."""
    return math.ceil(PLANNED_LATENCIES * crossing_s(latency_s, call, snapshot) - 1e-9)


def least_window_s(record: TrialRecord, reading: Reading) -> float:
    """The shortest window in which this mean latency can be judged."""
    return LEAST_LATENCIES * trial_crossing_s(record, (reading.answer_ms or 0.0) / 1000)


def window_is_short(record: TrialRecord, reading: Reading) -> bool:
    return reading.window_s < least_window_s(record, reading)


def in_window(reading: Reading) -> tuple[int, int]:
    """Answers of the window, without and with an error. Where the engine counts errors in its whole
    run only, its answers have the run's share of them."""
    good = round(good_share(reading) * reading.samples)
    return good, reading.samples - good


def cores_of(record: TrialRecord, reading: Reading) -> int:
    """How many CPUs the generator can use: those that it has, or fewer where its threads are."""
    return min(record.plan.cores, reading.threads or record.plan.cores)


def waited_share(record: TrialRecord, reading: Reading) -> float | None:
    """The share of its cores' time that the generator waited for a CPU; None where not known."""
    wait_s = record.usage.window_wait_s
    return None if wait_s is None else wait_s / (reading.window_s * cores_of(record, reading))


def think_ms(reading: Reading) -> float | None:
    """The mean think time Z of a closed load: from when a connection has its answer until the
    generator has sent its next request. None where the engine does not tell it. By the interactive
    response time law R = N / X - Z (P. J. Denning, J. P. Buzen, ACM Computing Surveys 10(3), 1978)
    it is part of the rate, and of no latency."""
    return reading.late.mean_ms if reading.late else None


def think_share(reading: Reading) -> float:
    """Z / (R + Z): the share of a closed load's cycle that is the generator's; 0 where the engine
    does not tell it."""
    think = think_ms(reading)
    if not think or reading.answer_ms is None:
        return 0.0
    return think / (think + reading.answer_ms)


def allowed_ms(latency_ms: float) -> float:
    """By how much the generator itself may be late where requests take so long."""
    return max(LEAST_LAG_MS, LAG_SHARE * latency_ms)


def by_others(record: TrialRecord, observation: Observation | None) -> float | None:
    """The share of the machine's CPUs that work outside the lab took in the window: what was not
    idle without the lab's containers. None if unknown, and of a service that is not the lab's,
    whose CPU time cannot be told from theirs."""
    taken = record.usage.host_taken
    if observation is None or record.before.foreign or taken is None:
        return None
    lab, cpus = _by_lab(observation), machine_cpus(observation)
    return None if lab is None or not cpus else max(0.0, taken - lab / cpus)


def _by_lab(observation: Observation) -> float | None:
    """The CPUs that the lab's containers used. One that rests is read more seldom than once in half
    a window: of it the even rise between two samples counts. Of one that began or ended in the
    window, as that of `make toxics`, what was seen of it counts. None without any, and where
    cAdvisor did not see the whole window."""
    if not observation.covers("cadvisor"):
        return None
    opens, closes = observation.window
    used = []
    for service in {series.labels.get("service", "") for series in observation.series(USED)}:
        rate = observation.rate(USED, service=service)
        rise = observation.increase(USED, service=service) if rate is None else None
        if rate is None and rise is None:
            rise = observation.rise_seen(USED, service=service)
        used.append(rise / (closes - opens) if rise is not None else rate)
    known = [cpus for cpus in used if cpus is not None]
    return sum(known) if known and len(known) == len(used) else None


def crowded_out(
    record: TrialRecord, reading: Reading, observation: Observation | None
) -> float | None:
    """The share of the CPUs that others used, where that left the lab too few: its figures are then
    a lower bound of what it can do. None where it did not. While some CPU is always idle, other
    processes take nothing from the lab."""
    busy, stolen = record.usage.host_taken or 0.0, record.usage.host_steal or 0.0
    share = max(stolen, by_others(record, observation) or 0.0)
    short = busy >= HOST_CROWDED or (waited_share(record, reading) or 0.0) >= WAITED
    return share if stolen >= STOLEN or (short and share >= OTHERS) else None
