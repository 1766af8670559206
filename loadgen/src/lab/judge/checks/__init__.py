"""Measurement to judgement: valid, or the reasons why not. Fails closed.

Three questions. Is the data there (`data`)? Was the load what it was to be (`generator`, `load`,
`held`)? Was the state constant, of the server (`state`, `steady`) and of the lab (`machine`)? A
check is one object in one of these modules, and is registered by being there. Its text is in
`lab.report.remarks`.

A server that is overloaded is a finding, not a fault.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType

from lab.judge.checks import data, generator, held, load, machine, state, steady
from lab.judge.checks.check import Check, Evidence
from lab.judge.quantities import crowded_out
from lab.model import Judgement, Measurement, Observation, Remark, Snapshot

QUESTIONS = {
    "Is the data there?": (data,),
    "Was the load what it was to be?": (generator, load, held),
    "Was the state constant?": (state, steady, machine),
}


def checks_of(modules: Iterable[ModuleType]) -> Iterator[Check]:
    """The checks of these modules, in the order of their definition."""
    for module in modules:
        yield from (found for found in vars(module).values() if isinstance(found, Check))


CHECKS: Mapping[str, Check] = {
    check.code: check for modules in QUESTIONS.values() for check in checks_of(modules)
}
# With one of these the server is away, and what it did not answer follows from that.
_AWAY = {state.jvm_restarted.code, state.server_gone.code, machine.machine_away.code}
# With one of these the generator lacked a CPU.
_STARVED = {"generator-full", "generator-throttled", "generator-starved"}


def judge(
    measurement: Measurement,
    observation: Observation | None = None,
    start: Snapshot | None = None,
) -> Judgement:
    """All reasons and notes of one measurement, as of `Evidence`."""
    record, reading = measurement.record, measurement.reading
    evidence = Evidence(record, reading, observation, start, measurement.problem)
    if record.lost:
        problem = () if measurement.problem is None else (measurement.problem,)
        return Judgement(problem, record.notes)
    found = {
        code: remarks for code, check in CHECKS.items() if (remarks := _asked(check, evidence))
    }
    _leave_symptoms_out(found, evidence)
    reasons: list[Remark] = []
    notes: list[Remark] = []
    for code, remarks in found.items():
        (reasons if CHECKS[code].invalidates(record) else notes).extend(remarks)
    others = None
    if reading is not None and not record.plan.hold:
        others = crowded_out(record, reading, observation)
    return Judgement(tuple(dict.fromkeys(reasons)), tuple(dict.fromkeys(notes)), others)


def _asked(check: Check, evidence: Evidence) -> tuple[Remark, ...]:
    """What a check finds, if what it asks of is there."""
    reading = evidence.measured
    if check.asks != "record":
        if reading is None or (check.asks == "held") != bool(evidence.record.plan.hold):
            return ()
        if check.asks == "answers" and not reading.samples:
            return ()
    return check(evidence)


def _leave_symptoms_out(found: dict[str, tuple[Remark, ...]], evidence: Evidence) -> None:
    """Leave out what only follows from something else that was found: of a server that is away, or
    silent, and of a generator that did not do its part."""
    invalid = {code for code in found if CHECKS[code].invalidates(evidence.record)}
    symptoms = {code for code in invalid if CHECKS[code].symptom}
    silent, nothing = steady.server_silent.code, data.nothing_answered.code
    if not _did_its_part(evidence, invalid):
        invalid -= {nothing}
    # A drift is asked of a trial that nothing else is wrong with.
    if symptoms - steady.DRIFTS or invalid - symptoms - {silent}:
        symptoms -= steady.DRIFTS
    if silent in found:
        paused = steady.server_paused
        if symptoms and _did_its_part(evidence, invalid):
            symptoms = {silent}
        else:
            found[paused.code] = tuple(paused.remark(**remark.values) for remark in found[silent])
    if nothing in invalid or invalid & _AWAY:
        symptoms = set()
    every = {code for code in found if CHECKS[code].symptom} | {silent}
    for code in (every - symptoms) | ({nothing} - invalid):
        found.pop(code, None)


def _did_its_part(evidence: Evidence, invalid: set[str]) -> bool:
    """Whether the generator sent what was due, so that the server is why it was not answered."""
    shown = {remark.code for remark in evidence.measured.remarks} if evidence.measured else set()
    return evidence.record.usage.window_cpu_s is not None and not invalid & (shown | _STARVED)


def by_accident(reasons: Iterable[Remark]) -> bool:
    """Whether a trial with these reasons should be measured once more: none of them is a finding,
    and none would come again for certain. All others may follow from a machine that was away."""
    codes = {reason.code for reason in reasons}
    away = machine.machine_away.code in codes
    return away or (bool(codes) and all(CHECKS[code].repeatable for code in codes))


def server_failures(reasons: Iterable[Remark]) -> tuple[Remark, ...]:
    """Those that say that the server itself failed."""
    return tuple(reason for reason in reasons if CHECKS[reason.code].server_failed)


def lab_differed(reasons: Iterable[Remark]) -> bool:
    """Whether the lab was not the planned one, so that the server may have failed for that."""
    return any(CHECKS[reason.code].lab_differed for reason in reasons)
