"""Was the server's state constant: the right server, one warm JVM, and the planned toxics?"""

from collections.abc import Iterator, Sequence

from lab.judge.checks.check import Evidence, Found, Values, check, stored
from lab.judge.same_lab import Difference, between_snapshots
from lab.model import JIT_BUSY, Json, Snapshot, TrialRecord, Value, all_of
from lab.model.knobs import READ_BACK

# What the JIT compiler may take of the CPUs that the server may use. So much of a full machine's
# throughput goes to the compiler, and that must not exceed the margin within which two sides are
# the same in practice (lab.judge.compare). JIT_MOST seconds per second are those of a fresh JVM,
# however many CPUs it has (docs/method.md).
JIT_COLD = 0.05
JIT_MOST = 0.2
# Nothing vouches for the toxics over a longer gap. A shorter gap is a note: on a busy machine the
# agent's look at them sometimes gets no answer. A look begins a second after the one before, is
# given up after 2 s, and then the next begins at once. With two looks that fail, and a third that
# takes 2 s as well, one answer comes up to 1 + 3 × 2 s after the other. A longer gap is no
# accident.
LONGEST_UNWATCHED_S = 7.0
# The driver begins a step of a script within two of its own steps.
SCRIPT_SLACK_S = 0.5
# Limits are set in microseconds of a period: they are read back rounded.
ROUNDED = 0.01
# In the order of their reports.
KINDS = ("settings", "toxics", "delay")

server_gone = stored("server-gone", "invalidates", server_failed=True)
server_not_back = stored("server-not-back", "invalidates", server_failed=True)
unequal_limits = stored("unequal-limits", "invalidates", lab_differed=True)
cold_unsteady = stored("cold-unsteady", "invalidates", repeatable=True)
cold_silent = stored("cold-silent", "invalidates")
cold_restarted = stored("cold-restarted", "invalidates")
cold_replaced = stored("cold-replaced", "invalidates")
cold_engine = stored("cold-engine", "invalidates")
unsettled = stored("unsettled", "notes")
script_left = stored("script-left", "notes")


@check("wrong-server", "invalidates", lab_differed=True)
def wrong_server(evidence: Evidence) -> Found:
    """The server names another model than the plan"""
    identity, planned = evidence.record.before.identity, evidence.record.plan.server
    if identity is not None and identity.model != planned:
        yield {"answered": identity.model, "planned": planned}


@check("jvm-restarted", "invalidates", server_failed=True)
def jvm_restarted(evidence: Evidence) -> Found:
    """Its start time changed. This is the server's finding"""
    before, after = evidence.record.before, evidence.record.after
    if after is not None and after.jvm_started_ms != before.jvm_started_ms:
        yield {}


@check("changed", "invalidates", lab_differed=True)
def changed(evidence: Evidence) -> Found:
    """The server's version, JDK, flags or limits, a setting, a toxic or the downstream's delay
    differs before and after the trial"""
    before, after = evidence.record.before, evidence.record.after
    if after is None:
        return
    if after.identity != before.identity and after.jvm_started_ms == before.jvm_started_ms:
        yield {"what": "identity"}
    yield from (_values(change) for change in _differences(before, after) if change.now is not None)


@check("settings-unread", "invalidates")
def settings_unread(evidence: Evidence) -> Found:
    """The server reported them before. Without a free descriptor it cannot read its own limits"""
    before, after = evidence.record.before, evidence.record.after
    differences = _differences(before, after) if after is not None else ()
    unread = [change.name for change in differences if change.now is None]
    if unread:
        yield {"settings": ", ".join(unread)}


@check("toxics-touched", "invalidates", lab_differed=True)
def toxics_touched(evidence: Evidence) -> Found:
    """The agent saw a change that was undone before the end (it looks once a second)"""
    record = evidence.record
    if record.after is None or record.before.direct or not record.toxic_changes:
        return
    if record.before.toxics == record.after.toxics:
        yield {"changes": ", ".join(record.toxic_changes)}


@check("differs", "invalidates", lab_differed=True, foreign="notes")
def differs(evidence: Evidence) -> Found:
    """A toxic or the downstream's delay differs from the start of the run, or a setting from the
    server's first trial, as after a new JVM lost a live change"""
    if evidence.start is not None:
        yield from map(_values, _differences(evidence.start, evidence.record.before))


@check("not-in-force", "invalidates", lab_differed=True)
def not_in_force(evidence: Evidence) -> Found:
    """The lab had changed a limit, the heap or another setting of its container for this trial, and
    the server reports another one"""
    condition, before = evidence.record.plan.condition, evidence.record.before
    if before.identity is None:
        return
    asked, settings = condition.host, before.settings
    unread = () if before.local_ports else ("local_ports",)
    read_back = {
        word: _other(asked.get(word), settings[name])
        for word, (name, _) in READ_BACK.items()
        if name in settings and name not in (*condition.knobs, *unread)
    }
    has = {
        "SERVER_CPUS": _quota_other_than(asked.get("SERVER_CPUS"), before),
        **read_back,
        "SERVER_JVM_FLAGS": _other_heap(asked.get("SERVER_JVM_FLAGS"), before.identity.jvm_flags),
    }
    yield from (
        {"setting": n, "asked": asked[n], "has": other} for n, other in has.items() if other
    )


@check("toxics-passed-by", "invalidates")
def toxics_passed_by(evidence: Evidence) -> Found:
    """The experiment's toxics were in force, and the server's calls go past Toxiproxy"""
    plan = evidence.record.plan
    if evidence.record.before.direct and (plan.script or plan.condition.toxics):
        yield {}


@check("without-toxiproxy", "notes")
def without_toxiproxy(evidence: Evidence) -> Found:
    """The server's calls go to the downstream without Toxiproxy, as `SERVER_DOWNSTREAM_URL` says.
    Changed or unwatched toxics then count for nothing"""
    if evidence.record.before.direct:
        yield {}


@check("toxics-unwatched", "invalidates", repeatable=True, lab_differed=True)
def toxics_unwatched(evidence: Evidence) -> Found:
    """The agent did not watch for more than {LONGEST_UNWATCHED_S:g} s"""
    return _unwatched(evidence.record, long=True)


@check("toxics-unwatched-briefly", "notes")
def toxics_unwatched_briefly(evidence: Evidence) -> Found:
    """For up to {LONGEST_UNWATCHED_S:g} s; with `TARGET=` however long"""
    return _unwatched(evidence.record, long=False)


@check("script-failed", "invalidates")
def script_failed(evidence: Evidence) -> Found:
    """A scripted step failed, or others changed toxics as well"""
    for number, done in enumerate(evidence.record.script, 1):
        if done.problem is not None:
            yield {"step": number, "change": done.change, "problem": done.problem}


@check("script-late", "invalidates", repeatable=True)
def script_late(evidence: Evidence) -> Found:
    """More than {SCRIPT_SLACK_S:g} s late"""
    record = evidence.record
    steps = zip(record.plan.script, record.script, strict=False)
    for number, (planned, done) in enumerate(steps, 1):
        late_s = done.started_s - record.window_offset_s - planned.at_s
        if done.problem is None and abs(late_s) > SCRIPT_SLACK_S:
            yield {"step": number, "change": done.change, "late_s": late_s}


@check("script-short", "invalidates")
def script_short(evidence: Evidence) -> Found:
    """The load ended early"""
    made, planned = len(evidence.record.script), len(evidence.record.plan.script)
    if made < planned:
        yield {"made": made, "planned": planned}


@check("compiling", "invalidates", repeatable=True)
def compiling(evidence: Evidence) -> Found:
    """The JIT compiler took more than {JIT_COLD:.0%} of the CPUs that the server may use, or more
    than {JIT_MOST:g} s of CPU time per second (of elapsed time, where CPU time is not known, as of
    a service of your own). Or it was at work or waited for a CPU for more than {JIT_BUSY:g} s per
    second: then a method waits longer for it than it takes

    A quota below one CPU stretches elapsed time as much as it lowers the limit.
    """
    record = evidence.record
    threads = all_of(record.jit_cpu, record.jit_share)
    allowed = min(JIT_MOST, JIT_COLD * _cpus(record))
    stretched = min(JIT_MOST, JIT_COLD * max(1.0, _cpus(record)))
    if threads is not None and threads.used > allowed:
        yield {"cpu_s": threads.used, "allowed_s": allowed}
    elif threads is not None and threads.busy > JIT_BUSY:
        yield {"busy_s": threads.busy, "allowed_s": JIT_BUSY}
    elif threads is None and record.jit_share is not None and record.jit_share > stretched:
        yield {"elapsed_s": record.jit_share, "allowed_s": stretched}


def _differences(was: Snapshot, now: Snapshot) -> list[Difference]:
    """What differs in the settings, and on the way to the downstream, which loads are planned
    for."""
    found = [change for change in between_snapshots(was, now) if change.kind in KINDS]
    delay = Difference("delay", "delay", was.delay_text, now.delay_text)
    found = [delay if change.kind == "delay" else change for change in found]
    return sorted(found, key=lambda change: (KINDS.index(change.kind), change.name))


def _values(change: Difference) -> Values:
    what = change.name if change.kind == "settings" else change.kind
    return {"what": what, "was": _plain(change.was), "now": _plain(change.now)}


def _plain(value: object) -> Value:
    return value if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _quota_other_than(cpus: str | None, before: Snapshot) -> str:
    if cpus is None:
        return ""
    quota, of_jvm = before.cpu_quota, before.own_identity.cpus
    if quota is None:
        # A limit to all CPUs is none.
        return "no limit" if float(cpus) < of_jvm else ""
    return "" if abs(quota - float(cpus)) <= ROUNDED * float(cpus) else f"{quota:g}"


def _other(asked: str | None, value: Json) -> str:
    found = str(value).lower()
    return "" if asked is None or found == asked else found


def _other_heap(asked: str | None, flags: Sequence[str]) -> str:
    """A JDK is not given the flags that it does not know, but always its heap."""
    heap = {flag for flag in (asked or "").split() if flag.startswith(("-Xms", "-Xmx"))}
    return "" if heap <= {*flags} else "others"


def _unwatched(record: TrialRecord, *, long: bool) -> Iterator[Values]:
    """When the agent did not watch the toxics. With a foreign service no gap is `long`: it may call
    no downstream of the lab. No gap counts where no toxic reaches the server."""
    for gap in record.unwatched if not record.before.direct else ():
        gap_s = (gap.ended_at - gap.started_at).total_seconds()
        if (gap_s > LONGEST_UNWATCHED_S and not record.before.foreign) == long:
            yield {"began": f"{gap.started_at:%H:%M:%S}", "ended": f"{gap.ended_at:%H:%M:%S}"}


def _cpus(record: TrialRecord) -> float:
    """The CPUs that the server may use. A JVM counts whole CPUs, so its quota is more precise. A
    service that is not the lab's does not tell: it has those of the generator."""
    seen = record.before.cpus or record.plan.cores
    return min(seen, record.before.cpu_quota or seen)
