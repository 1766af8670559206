"""Measurement to judgement: valid, or the reasons why not. Fails closed.

Three questions. Is the data there (`data`)? Was the load what it was to be (`generator`, `load`)?
Was the state constant, of the server (`state`, `steady`) and of the lab (`machine`)? A check is one
object in one of these modules, and is registered by being there. Its text is in
`lab.report.remarks`.

A server that is overloaded is a finding, not a fault.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType

from lab.judge.checks import data, generator, load, machine, state, steady
from lab.judge.checks.check import Check, problems
from lab.judge.metrics import without_none
from lab.judge.trial import Trial
from lab.model import Judgement, Remark

QUESTIONS = {
    "Is the data there?": (data,),
    "Was the load what it was to be?": (generator, load),
    "Was the state constant?": (state, steady, machine),
}


def checks_of(modules: Iterable[ModuleType]) -> Iterator[Check]:
    """The checks of these modules, in the order of their definition."""
    for module in modules:
        yield from (value for value in vars(module).values() if isinstance(value, Check))


CHECKS: Mapping[str, Check] = {
    check.code: check for modules in QUESTIONS.values() for check in checks_of(modules)
}
_REPEATABLE = {code for code, check in CHECKS.items() if check.repeatable}
_SERVER_FAILED = {code for code, check in CHECKS.items() if check.server_failed}
_LAB_DIFFERED = {code for code, check in CHECKS.items() if check.lab_differed}
# With one of these the server is away, and what it did not answer follows from that.
_AWAY = {state.jvm_restarted.code, state.server_gone.code, machine.machine_away.code}
# With one of these the generator lacked a CPU.
_STARVED = {"generator-full", "generator-throttled", "generator-starved"}
_SILENT, _NOTHING = steady.server_silent.code, data.nothing_answered.code


def judge(trial: Trial) -> Judgement:
    if trial.record.lost:
        return Judgement(without_none(trial.measurement.problem), trial.record.notes)
    findings = {code: remarks for code, check in CHECKS.items() if (remarks := _ask(check, trial))}
    _leave_symptoms_out(findings, trial)
    # The check of a problem in a stored run may be gone.
    reasons = [remark for remark in problems(trial) if remark.code not in CHECKS]
    notes: list[Remark] = []
    for code, remarks in findings.items():
        (reasons if CHECKS[code].invalidates(trial) else notes).extend(remarks)
    is_load = trial.measurement.reading is not None and not trial.plan.hold
    others = machine.crowded_out(trial) if is_load else None
    return Judgement(tuple(dict.fromkeys(reasons)), tuple(dict.fromkeys(notes)), others)


def _ask(check: Check, trial: Trial) -> tuple[Remark, ...]:
    """What a check finds, if what it asks of is there."""
    reading = trial.measurement.reading
    if check.asks != "record":
        if reading is None or (check.asks == "held") != bool(trial.plan.hold):
            return ()
        if check.asks == "answers" and not reading.samples:
            return ()
    return check(trial)


def _leave_symptoms_out(findings: dict[str, tuple[Remark, ...]], trial: Trial) -> None:
    """Leave out what only follows from something else that was found: of a server that is away, or
    silent, and of a generator that did not do its part."""
    invalid = {code for code in findings if CHECKS[code].invalidates(trial)}
    symptoms = {code for code in invalid if CHECKS[code].symptom}
    if not _did_its_part(trial, invalid):
        invalid -= {_NOTHING}
    # A drift is asked of a trial that nothing else is wrong with.
    if symptoms - steady.DRIFTS or invalid - symptoms - {_SILENT}:
        symptoms -= steady.DRIFTS
    if _SILENT in findings:
        if symptoms and _did_its_part(trial, invalid):
            symptoms = {_SILENT}
        else:
            paused = steady.server_paused
            findings[paused.code] = tuple(
                paused.remark(**remark.values) for remark in findings[_SILENT]
            )
    if _NOTHING in invalid or invalid & _AWAY:
        symptoms = set()
    every = {code for code in findings if CHECKS[code].symptom} | {_SILENT}
    for code in (every - symptoms) | ({_NOTHING} - invalid):
        findings.pop(code, None)


def _did_its_part(trial: Trial, invalid: set[str]) -> bool:
    """True if the generator sent what was due, so that the server is why it was not answered."""
    reading = trial.measurement.reading
    shown = {remark.code for remark in reading.remarks} if reading else set()
    return trial.usage.window_cpu_s is not None and not invalid & (shown | _STARVED)


def by_accident(reasons: Iterable[Remark]) -> bool:
    """True if a trial with these reasons should be measured once more: none of them is a finding,
    and none would come again for certain. All others may follow from a machine that was away."""
    codes = {reason.code for reason in reasons}
    away = machine.machine_away.code in codes
    return away or (bool(codes) and codes <= _REPEATABLE)


def server_failures(reasons: Iterable[Remark]) -> tuple[Remark, ...]:
    """Those by which the server itself failed."""
    return tuple(reason for reason in reasons if reason.code in _SERVER_FAILED)


def lab_differed(reasons: Iterable[Remark]) -> bool:
    """True if the lab was not the planned one, so that the server may have failed for that."""
    return any(reason.code in _LAB_DIFFERED for reason in reasons)
