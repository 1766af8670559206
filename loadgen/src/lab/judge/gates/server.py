"""Was it the right server, in the right state, all the time?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lab.judge.gates.parts import PART_RESTARTED
from lab.judge.same_lab import Difference, between_snapshots
from lab.model import AWAY, JIT_BUSY, Json, Snapshot, TrialRecord, all_of
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
COLD = "cold JVM"
COMPILING = f"{COLD}: the JIT compiler ran"
RESTARTED = "the JVM restarted during the trial"
GONE = "the server did not answer after the load"
# A script's step is named so.
STEP = "step"
WRONG_SERVER = "wrong server"
CHANGED = "changed during the trial"
UNTOLD_SETTINGS = "settings that the server did not tell after the trial any more"
OTHER_TOXICS = "toxics differ from the start of the run"
OTHER_DELAY = "the downstream's delay differs from the start of the run"
OTHER_SETTINGS = "settings differ from the server's first trial"
NOT_IN_FORCE = "the trial's condition was not in force"
# Limits are set in microseconds of a period: they are read back rounded.
ROUNDED = 0.01
UNWATCHED = "the toxics were not watched"
_DIRECT = "its calls go to the downstream without Toxiproxy (SERVER_DOWNSTREAM_URL)"
# With one of these reasons the server may have given way because the lab was not the planned one.
NOT_ITS_OWN = (
    WRONG_SERVER,
    CHANGED,
    OTHER_TOXICS,
    OTHER_DELAY,
    OTHER_SETTINGS,
    NOT_IN_FORCE,
    UNWATCHED,
    AWAY,
    PART_RESTARTED,
)


def same_server(record: TrialRecord) -> Iterator[str]:
    """What changed in the server and in everything it depends on."""
    plan, before, after = record.plan, record.before, record.after
    if before.identity is not None and before.identity.model != plan.server:
        yield f"{WRONG_SERVER}: {before.identity.model} answered under the name {plan.server}"
    if after is None:
        # Other parts of the lab are read back too. Each names itself in the problem.
        problem = record.after_problem or "it gave no reason"
        own = problem.startswith(f"{plan.server}: ")
        yield f"{GONE if own else 'the lab could not be read after the load'}: {problem}"
        return
    if after.jvm_started_ms != before.jvm_started_ms:
        yield RESTARTED
    elif after.identity != before.identity:
        yield f"the server's identity {CHANGED}"
    yield from _changes(before, after)
    if record.toxic_changes and before.toxics == after.toxics and not before.direct:
        yield f"toxics {CHANGED}: {', '.join(record.toxic_changes)}"
    if before.direct and (plan.script or plan.condition.toxics):
        yield f"its toxics did not reach it: {_DIRECT}"
    yield from unwatched(record, long=True)
    yield from _script_kept(record)


def not_in_force(record: TrialRecord) -> Iterator[str]:
    """What the trial's condition asked of the server's container, and the server does not have:
    somebody has put it back. Only what the server tells, so none of a foreign service."""
    condition, before = record.plan.condition, record.before
    if before.identity is None:
        return
    asked, settings = condition.host, before.settings
    untold = () if before.local_ports else ("local_ports",)
    read_back = {
        word: _other(asked.get(word), settings[name])
        for word, (name, _) in READ_BACK.items()
        if name in settings and name not in (*condition.knobs, *untold)
    }
    has = {
        "SERVER_CPUS": _quota_other_than(asked.get("SERVER_CPUS"), before),
        **read_back,
        "SERVER_JVM_FLAGS": _other_heap(asked.get("SERVER_JVM_FLAGS"), before.identity.jvm_flags),
    }
    for name, found in has.items():
        if found:
            yield f"{NOT_IN_FORCE}: {name} was to be {asked[name]}, and the server has {found}"


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


def without_proxy(record: TrialRecord) -> Iterator[str]:
    """A note on a server that no toxic reaches."""
    if record.before.direct:
        yield f"no toxic was in force: {_DIRECT}"


def unwatched(record: TrialRecord, *, long: bool) -> Iterator[str]:
    """When nobody watched the toxics. A gap too `long` is a reason, a short gap a note. With a
    foreign service every gap is a note: nobody knows whether it calls the lab's downstream at
    all. No gap counts where no toxic reaches the server."""
    for one in record.unwatched if not record.before.direct else ():
        gap_s = (one.ended_at - one.started_at).total_seconds()
        if (gap_s > LONGEST_UNWATCHED_S and not record.before.foreign) == long:
            yield f"{UNWATCHED} from {one.started_at:%H:%M:%S} to {one.ended_at:%H:%M:%S}"


def _script_kept(record: TrialRecord) -> Iterator[str]:
    """Why the toxics did not follow the script."""
    planned, done = record.plan.script, record.script
    for number, (step, real) in enumerate(zip(planned, done, strict=False), 1):
        late_s = real.started_s - record.window_offset_s - step.at_s
        if real.problem is not None:
            yield f"the script failed at step {number}, {real.change}: {real.problem}"
        elif abs(late_s) > SCRIPT_SLACK_S:
            yield f"{STEP} {number} of the script, {real.change}, was {late_s:.1f} s late"
    if len(done) < len(planned):
        yield f"only {len(done)} of {len(planned)} steps of the script were made"


def _changes(before: Snapshot, after: Snapshot) -> Iterator[str]:
    found = list(between_snapshots(before, after))
    settings = sorted((one for one in found if one.kind == "settings"), key=lambda one: one.name)
    # A server without a free descriptor cannot read its own limits any more.
    untold = [one.name for one in settings if one.now is None]
    changed = [one.name for one in settings if one.now is not None]
    if changed:
        yield f"settings {CHANGED}: {', '.join(changed)}"
    if untold:
        yield f"{UNTOLD_SETTINGS}: {', '.join(untold)}"
    for one in found:
        if one.kind == "toxics":
            yield f"toxics {CHANGED}: {_became(one)}"
        elif one.kind == "delay":
            yield f"the downstream's delay {CHANGED}: {_delays(before, after)}"


def as_begun(record: TrialRecord, start: Snapshot | None) -> Iterator[str]:
    """What differs from `start`: the way to the downstream, which the run's loads were planned for,
    and the server's settings, which its trials should have in common. Of a foreign service these
    are notes: nobody knows whether it calls the lab's downstream at all."""
    if start is None:
        return
    found = list(between_snapshots(start, record.before))
    for one in sorted((one for one in found if one.kind == "settings"), key=lambda one: one.name):
        yield f"{OTHER_SETTINGS}: {one.name} {_became(one)}"
    for one in found:
        if one.kind == "toxics":
            yield f"{OTHER_TOXICS}: {_became(one)}"
        elif one.kind == "delay":
            yield f"{OTHER_DELAY}: {_delays(start, record.before)}"


def _became(one: Difference) -> str:
    return f"{one.was} became {one.now}"


def _delays(was: Snapshot, now: Snapshot) -> str:
    if was.spread or now.spread:
        return f"{was.delay_text} became {now.delay_text}"
    return f"{was.downstream_delay_ms:g} became {now.downstream_delay_ms:g} ms"


def not_asked(record: TrialRecord) -> Iterator[str]:
    """Notes on what could not be checked of a foreign service."""
    if not record.before.foreign:
        return
    what = ["identity", "settings", "limits", "what it calls"]
    if record.before.exported is None:
        what.insert(1, "restart")
    names = ", ".join(what)
    yield f"not checked, as the lab cannot read them of a service that is not its own: {names}"
    if not record.warmth.provable:
        yield f"warm-up was not proven: {record.warmth.problem}"
    if record.demand is not None and record.demand.r0_problem is not None:
        yield f"R0 unknown: {unknown_r0(record)}"


def unknown_r0(record: TrialRecord) -> str:
    """Why the R0 of a foreign service is not known."""
    if record.demand is not None and record.demand.r0_problem is not None:
        return record.demand.r0_problem
    return "a single connection got no figures before the load"


def compiler_unread(record: TrialRecord) -> bool:
    """Whether it is unknown what the compiler of a JVM did that tells it: a foreign service needs a
    JMX exporter for that."""
    tells = not record.before.foreign or record.before.exported is not None
    return tells and record.jit_share is None and record.jit_cpu is None


def warm(record: TrialRecord) -> Iterator[str]:
    """Why the JVM counts as cold."""
    if record.warmth.cold:
        yield f"{COLD}: {record.warmth.problem or 'it was never steady'}"
    cpus, elapsed = _cpus(record), record.jit_share
    threads = all_of(record.jit_cpu, elapsed)
    busy = elapsed if threads is None else threads.busy
    allowed = min(JIT_MOST, JIT_COLD * cpus)
    # A quota below one CPU stretches elapsed time as much as it lowers the limit.
    stretched = min(JIT_MOST, JIT_COLD * max(1.0, cpus))
    if threads is not None and threads.used > allowed:
        yield (
            f"{COMPILING} for {threads.used:.3f} s of CPU time per second of the window "
            f"(allowed {allowed:.3f} s)"
        )
    elif threads is None and elapsed is not None and elapsed > stretched:
        yield (
            f"{COMPILING} for {elapsed:.2f} s per second of the window (allowed {stretched:.2f} s)"
        )
    elif busy is not None and busy > JIT_BUSY:
        yield (
            f"{COMPILING} for {busy:.2f} s per second of the window "
            f"(allowed {JIT_BUSY:.2f} s): methods wait for it"
        )


def _cpus(record: TrialRecord) -> float:
    """The CPUs that the server may use. A JVM counts whole CPUs, so its quota is more precise. A
    service that is not the lab's does not tell: it has those of the generator."""
    seen = record.before.cpus or record.plan.cores
    return min(seen, record.before.cpu_quota or seen)
