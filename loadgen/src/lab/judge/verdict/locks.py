"""Waits for locks, and carriers that waiting virtual threads keep, where a server watches them.

A server of the lab does while its knob `lock_watch_ms` is not 0 (0 is the default), and a
service of the user's own where the lab's recorder in its JVM was told to (docs/verdict.md). Of a
server that does not watch nobody can tell, and there is no Standing.

Each function gives a Standing, or None where nothing is known. A score of STRONG_FROM or more takes
at least two things: something waited there, and that explains what the load lost.
"""

from __future__ import annotations

from lab.judge.predict import release_of
from lab.judge.verdict.evidence import EXPLAINED, WAITING_SHARE, SeenTrial, kept, value
from lab.judge.verdict.foreign import PAGE
from lab.judge.verdict.threads import LOOP_FULL
from lab.model import Evidence, Standing

WATCH = "lock_watch_ms"
WAITED = "lab_wait_seconds_total"
WATCHES = "lab_lock_watch_ms"
FAILED_LOOKS = "lab_lock_watch_failed_looks_total"
PINNED = "pinned"
# What a server calls all sites beyond the most that it names (LockWatch.java).
OTHER = "other"
# Of the requests that wait for anything: from the first share on most of them wait at one lock,
# from the second on it holds up enough of them to be a suspect.
MOST, SOME = 0.5, 0.25
# From this JDK on a server also sees the waits of virtual threads (ParkedThreads.java).
SEES_VIRTUAL = 25


def watched(seen: SeenTrial) -> bool:
    """Whether the server counted waits in this trial, from its start to its end."""
    return bool(seen.record.before.lock_watch_ms) and not ended(seen)


def lock(seen: SeenTrial) -> Standing | None:
    """The site where most threads waited for a monitor or a lock.

    The seconds that threads waited there, per second, are the mean number of threads that wait
    (Little's law: L = λ · W; J. D. C. Little, "A Proof for the Queuing Formula: L = λW", Operations
    Research 9(3), 1961). It is held against the requests that wait for anything: those in flight
    (X · R), less those that are worked on when nothing waits (X · R0). Of those in a pool's queue
    none can reach a lock, so of a pool no more are in flight than it has threads. For how long a
    lock was held nobody can tell, so its utilisation is unknown.

    On busy CPUs the holder of a lock waits for a CPU, and all others for the holder: there the lock
    may be a symptom, so it is no more than a suspect."""
    if not watched(seen):
        return None
    mine = {"server": seen.server}
    sites = [
        (site, seen.rate(f"waiting at {site}", "threads", WAITED, kind=kind, site=site, **mine))
        for kind in ("monitor", "lock")
        for site in seen.each("site", WAITED, kind=kind, **mine)
    ]
    told = [(site, waiting) for site, waiting in sites if waiting is not None]
    if not told:
        return None
    site, waiting = max(told, key=lambda one: one[1].value)
    behind = _held_up(seen, seen.record.before.pool_size)
    share = waiting.value / behind.value if behind and behind.value > 0 else None
    score = 0.3 if waiting.value else 0.0
    sentence = f"the lock at {site}: {waiting.value:.1f} threads waited for it on average"
    if waiting.value >= max(1.0, WAITING_SHARE * seen.record.plan.concurrency):
        if share is None or seen.crowded:
            score = 0.6
        elif share >= MOST and site != OTHER:
            score = 0.94 if share >= EXPLAINED else 0.85
        elif share >= SOME:
            # Also where it is several sites of which none has a name.
            score = 0.6
    if behind is not None:
        sentence += f", of {behind.value:.1f} {behind.what}"
    if seen.crowded:
        sentence += f", on CPUs that were {seen.cpus_busy:.0%} busy"
    return Standing(
        "lock",
        saturation=waiting.value,
        waiting="threads",
        score=score,
        sentence=sentence,
        evidence=kept(waiting, behind),
    )


def pinned_carriers(seen: SeenTrial) -> Standing | None:
    """Carriers that virtual threads kept while they waited, below a frame of native code or of a
    class being initialised; before JDK 24 also inside synchronized (JEP 491). The seconds that they
    kept them, per second, are the mean number of carriers that were kept (Little's law)."""
    carriers = seen.record.before.carriers
    mine = {"server": seen.server}
    told = seen.rate("carriers kept", "threads", WAITED, kind=PINNED, **mine)
    if not watched(seen) or not carriers or told is None:
        return None
    used = min(1.0, told.value / carriers)
    name = "lab_virtual_thread_scheduler_queued"
    queued = seen.mean("virtual threads waiting for a carrier", "threads", name, **mine)
    request = {**mine, "route": seen.call.route.path}
    wait = seen.mean_time("mean wait", "lab_http_request_seconds", phase="queue", **request)
    # JDK 21 does not tell how many are queued. The wait leaves out a thread that waits again.
    waiting = max(value(queued) or 0.0, seen.reading.achieved_rps * (value(wait) or 0.0))
    sites = {
        site: seen.rate(f"kept at {site}", "threads", WAITED, kind=PINNED, site=site, **mine)
        for site in seen.each("site", WAITED, kind=PINNED, **mine)
    }
    site = max(sites, key=lambda one: value(sites[one]) or 0.0)
    return Standing(
        "pinned carriers",
        utilisation=used,
        saturation=waiting,
        waiting="virtual threads",
        score=0.96 if used >= LOOP_FULL and waiting >= 1 else 0.5 * used,
        sentence=(
            f"pinned carriers: {told.value:.1f} of {carriers} kept by virtual threads that waited, "
            f"{waiting:.0f} waiting for one; most at {site}"
        ),
        evidence=kept(told, sites[site], queued, wait),
    )


def unseen(seen: SeenTrial) -> str | None:
    """What is not known of locks; None where all is, and of what cannot watch: a framework as it
    ships, and a service that is no JVM as far as anybody knows."""
    before = seen.record.before
    watch = before.lock_watch_ms
    if watch == 0:
        where = f", as it is off or failed (the service's log tells), see {PAGE}"
        why = where if before.foreign else ""
        return f"whether requests waited for a lock: {WATCH} is 0{why}"
    if watch is None:
        if before.exported is None:
            return None
        return f"whether requests waited for a lock: no recorder watches them, see {PAGE}"
    if ended(seen):
        return f"whether requests waited for a lock: watching failed, see the log of {seen.server}"
    release = release_of(before.jdk)
    if release is not None and release < SEES_VIRTUAL:
        return f"whether virtual threads waited for a lock: JDK {release} does not tell"
    failed = seen.observation.increase(FAILED_LOOKS, server=seen.server)
    if failed:
        return f"whether virtual threads waited for a lock: {failed:.0f} looks at them failed"
    return None


def ended(seen: SeenTrial) -> bool:
    """Whether a server that was told to watch no longer does: it tells 0 once its stream of events
    has ended, and what was counted until then is too little."""
    if not seen.record.before.lock_watch_ms:
        return False
    opens, closes = seen.observation.window
    told = seen.observation.series(WATCHES, server=seen.server)
    return any(opens <= at <= closes for series in told for at in series.times_of(0))


def _held_up(seen: SeenTrial, threads: int | None) -> Evidence | None:
    """How many requests waited for anything, on average; where they have so many `threads`, of
    those that had one. None where nobody knows how long a request takes when nothing waits."""
    reading, plan = seen.reading, seen.record.plan
    alone_ms = seen.expected_ms
    if alone_ms is None or (reading.answer_ms is None and plan.mode == "open"):
        return None
    in_flight = reading.in_flight
    if plan.mode == "closed":
        # Its connections are all in flight, or with the generator: N = X·(R + Z).
        in_flight = plan.concurrency - reading.achieved_rps * seen.think_s
    what = "requests that waited for anything"
    if threads is not None:
        in_flight = min(in_flight, float(threads))
        what = "requests with a thread that waited for anything"
    waiting = max(0.0, in_flight - seen.reading.achieved_rps * alone_ms / 1000)
    source = "Little's law: requests in flight − achieved_rps × the time when nothing waits"
    return Evidence(what, waiting, "requests", source)
