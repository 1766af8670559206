"""Was the server's state constant: the right server, one warm JVM, and the planned toxics?"""

from collections.abc import Iterator, Sequence

from lab.judge.checks.check import Found, Values, check, stored
from lab.judge.same_lab import Difference, between_snapshots
from lab.judge.trial import Trial
from lab.model import JIT_BUSY, Fairness, Json, Remark, Snapshot, Value, all_of
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
def wrong_server(trial: Trial) -> Found:
    """The server names another model than the plan"""
    identity = trial.before.identity
    if identity is not None and identity.model != trial.server:
        yield {"answered": identity.model, "planned": trial.server}


@check("jvm-restarted", "invalidates", server_failed=True)
def jvm_restarted(trial: Trial) -> Found:
    """Its start time changed. This is the server's finding"""
    before, after = trial.before, trial.record.after
    if after is not None and after.jvm_started_ms != before.jvm_started_ms:
        yield {}


@check("changed", "invalidates", lab_differed=True)
def changed(trial: Trial) -> Found:
    """The server's version, JDK, flags or limits, a setting, a toxic or the downstream's delay
    differs before and after the trial"""
    before, after = trial.before, trial.record.after
    if after is None:
        return
    if after.identity != before.identity and after.jvm_started_ms == before.jvm_started_ms:
        yield {"what": "identity"}
    yield from (_values(change) for change in _differences(before, after) if change.now is not None)


@check("settings-unread", "invalidates")
def settings_unread(trial: Trial) -> Found:
    """The server reported them before. Without a free descriptor it cannot read its own limits"""
    after = trial.record.after
    differences = _differences(trial.before, after) if after is not None else ()
    unread = [change.name for change in differences if change.now is None]
    if unread:
        yield {"settings": ", ".join(unread)}


@check("toxics-touched", "invalidates", lab_differed=True)
def toxics_touched(trial: Trial) -> Found:
    """The agent saw a change that was undone before the end (it looks once a second)"""
    after, changes = trial.record.after, trial.record.toxic_changes
    if after is None or trial.before.direct or not changes:
        return
    if trial.before.toxics == after.toxics:
        yield {"changes": ", ".join(changes)}


@check("differs", "invalidates", lab_differed=True, without_contract="notes")
def differs(trial: Trial) -> Found:
    """A toxic or the downstream's delay differs from the start of the run, or a setting from the
    server's first trial, as after a new JVM lost a live change"""
    if trial.start is not None:
        yield from map(_values, _differences(trial.start, trial.before))


@check("not-in-force", "invalidates", lab_differed=True)
def not_in_force(trial: Trial) -> Found:
    """The lab had changed a limit, the heap or another setting of its container for this trial, and
    the server reports another one"""
    condition, before = trial.plan.condition, trial.before
    if before.identity is None:
        return
    # Of a JVM that cannot read its ports, nothing is known of them.
    unknown = {*condition.knobs, *(() if before.local_ports else ("local_ports",))}
    has = {"SERVER_CPUS": _quota_text(before)}
    for word, (name, _) in READ_BACK.items():
        if name in before.settings and name not in unknown:
            has[word] = str(before.settings[name]).lower()
    for word, asked in condition.host.items():
        if word == "SERVER_CPUS":
            other = not _is_quota(before, float(asked))
        elif word == "SERVER_JVM_FLAGS":
            other = not _heap(asked.split()) <= {*before.identity.jvm_flags}
        else:
            other = has.get(word, asked) != asked
        if other:
            yield {"setting": word, "asked": asked, "has": has.get(word, "others")}


@check("toxics-passed-by", "invalidates")
def toxics_passed_by(trial: Trial) -> Found:
    """The experiment's toxics were in force, and the server's calls go past Toxiproxy"""
    if trial.before.direct and (trial.plan.script or trial.plan.condition.toxics):
        yield {}


@check("without-toxiproxy", "notes")
def without_toxiproxy(trial: Trial) -> Found:
    """The server's calls go to the downstream without Toxiproxy, as `SERVER_DOWNSTREAM_URL` says.
    Changed or unwatched toxics then count for nothing"""
    if trial.before.direct:
        yield {}


@check("toxics-unwatched", "invalidates", repeatable=True, lab_differed=True)
def toxics_unwatched(trial: Trial) -> Found:
    """The agent did not watch for more than {LONGEST_UNWATCHED_S:g} s"""
    return _unwatched(trial, long=True)


@check("toxics-unwatched-briefly", "notes")
def toxics_unwatched_briefly(trial: Trial) -> Found:
    """For up to {LONGEST_UNWATCHED_S:g} s; with `TARGET=` however long"""
    return _unwatched(trial, long=False)


@check("script-failed", "invalidates")
def script_failed(trial: Trial) -> Found:
    """A scripted step failed"""
    for number, done in enumerate(trial.record.script, 1):
        if done.problem is not None:
            yield {"step": number, "change": done.change, "problem": done.problem}


@check("script-late", "invalidates", repeatable=True)
def script_late(trial: Trial) -> Found:
    """More than {SCRIPT_SLACK_S:g} s late"""
    steps = zip(trial.plan.script, trial.record.script, strict=False)
    for number, (planned, done) in enumerate(steps, 1):
        late_s = done.started_s - trial.record.window_offset_s - planned.at_s
        if done.problem is None and abs(late_s) > SCRIPT_SLACK_S:
            yield {"step": number, "change": done.change, "late_s": late_s}


@check("script-short", "invalidates")
def script_short(trial: Trial) -> Found:
    """The load ended early"""
    made, planned = len(trial.record.script), len(trial.plan.script)
    if made < planned:
        yield {"made": made, "planned": planned}


@check("compiling", "invalidates", repeatable=True)
def compiling(trial: Trial) -> Found:
    """The JIT compiler took more than {JIT_COLD:.0%} of the CPUs that the server may use, or more
    than {JIT_MOST:g} s of CPU time per second (of elapsed time, where CPU time is not known, as of
    a service of your own). Or it was at work or waited for a CPU for more than {JIT_BUSY:g} s per
    second: then a method waits longer for it than it takes

    A quota below one CPU stretches elapsed time as much as it lowers the limit. A JVM counts whole
    CPUs, so its quota is more precise. A service that does not report its CPUs has those of the
    generator.
    """
    record, before = trial.record, trial.before
    threads = all_of(record.jit_cpu, record.jit_share)
    seen = before.cpus or trial.plan.cores
    cpus = min(seen, before.cpu_quota or seen)
    allowed, stretched = (min(JIT_MOST, JIT_COLD * most) for most in (cpus, max(1.0, cpus)))
    if threads is not None and threads.used > allowed:
        yield {"cpu_s": threads.used, "allowed_s": allowed}
    elif threads is not None and threads.busy > JIT_BUSY:
        yield {"busy_s": threads.busy, "allowed_s": JIT_BUSY}
    elif threads is None and record.jit_share is not None and record.jit_share > stretched:
        yield {"elapsed_s": record.jit_share, "allowed_s": stretched}


def unequal(fairness: Fairness) -> tuple[Remark, ...]:
    """Why no row of the comparison is valid; empty when it is fair."""
    remarks = []
    for name, values in fairness.unequal.items():
        lists = [set(map(str, value)) for value in values.values() if isinstance(value, list)]
        common = set.intersection(*lists) if lists else set()
        servers = (f"{server}={_unshared(value, common)}" for server, value in values.items())
        remarks.append(unequal_limits.remark(limit=name, servers=" ".join(servers)))
    return tuple(remarks)


def _unshared(value: Json, common: set[str]) -> str:
    """A value; of a list only what the others do not all have too."""
    if isinstance(value, list):
        return ",".join(str(item) for item in value if str(item) not in common) or "none"
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _differences(was: Snapshot, now: Snapshot) -> list[Difference]:
    """What differs in the settings, and on the way to the downstream, which loads are planned
    for."""
    changes = [change for change in between_snapshots(was, now) if change.kind in KINDS]
    return sorted(changes, key=lambda change: (KINDS.index(change.kind), change.name))


def _values(change: Difference) -> Values:
    what = change.name if change.kind == "settings" else change.kind
    return {"what": what, "was": _plain(change.was), "now": _plain(change.now)}


def _plain(value: object) -> Value:
    return value if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _quota_text(before: Snapshot) -> str:
    return "no limit" if before.cpu_quota is None else f"{before.cpu_quota:g}"


def _is_quota(before: Snapshot, cpus: float) -> bool:
    """True if the server has this limit. A limit to all CPUs is none."""
    if before.cpu_quota is None:
        return cpus >= (before.cpus or 0)
    return abs(before.cpu_quota - cpus) <= ROUNDED * cpus


def _heap(flags: Sequence[str]) -> set[str]:
    """A JDK is not given the flags that it does not know, but always its heap."""
    return {flag for flag in flags if flag.startswith(("-Xms", "-Xmx"))}


def _unwatched(trial: Trial, *, long: bool) -> Iterator[Values]:
    """When the agent did not watch the toxics. Where it is not known what the server calls, no gap
    is `long`. No gap counts where no toxic reaches the server."""
    for gap in trial.record.unwatched if not trial.before.direct else ():
        gap_s = (gap.ended_at - gap.started_at).total_seconds()
        if (gap_s > LONGEST_UNWATCHED_S and trial.has_contract) == long:
            yield {"began": f"{gap.started_at:%H:%M:%S}", "ended": f"{gap.ended_at:%H:%M:%S}"}
