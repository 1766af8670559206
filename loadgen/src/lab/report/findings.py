"""Findings in words, made of their codes and numbers."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import asdict

from lab.model import (
    AS_IT_IS,
    Dosed,
    Drift,
    Finding,
    Grown,
    InUnits,
    Limit,
    Named,
    NotFound,
    PerConnection,
    Recovered,
    Recoveries,
    Remark,
    SettingChange,
    Sustained,
    Tried,
)
from lab.report import planted, remarks
from lab.report.remarks import say
from lab.report.text import counted

# Findings that have answers, tables or sections of their own.
ELSEWHERE = (Sustained, PerConnection, InUnits, Drift)


def lines(findings: Sequence[Finding]) -> tuple[str, ...]:
    """A line for each finding, after whose it is; none for one that only a table has."""
    return tuple(filter(None, map(line, findings)))


def line(finding: Finding) -> str:
    if isinstance(finding, Named | Dosed):
        return planted.line(finding)
    if isinstance(finding, ELSEWHERE):
        return ""
    launch = f" #{finding.launch}" if finding.launch else ""
    server = f"{finding.server}{launch}: " if finding.server else ""
    return f"{server}{text(finding)}"


def text(finding: Finding) -> str:
    """The text by the name of the finding's class, whose values are its fields."""
    values = asdict(finding)
    match finding:
        case NotFound():
            values["problems"] = reasons(finding.problems)
        case Recovered():
            values["changes"] = ", then ".join(finding.disturbance.changes)
        case Recoveries():
            values["in"] = counted(finding.launches, "launch", "es")
            values["some"] = finding.recovered < finding.launches
        case Grown():
            return _grown(finding, values)
        case Tried():
            values |= _tried(finding)
        case Limit():
            condition = finding.condition
            values["under"] = None if condition == AS_IT_IS else condition.text
            values["why"] = reasons(finding.why)
    code = type(finding).__name__
    return say("findings", code if code in remarks.CATALOGUE["findings"] else "Finding", **values)


def reasons(whys: Iterable[Remark]) -> str:
    return "; ".join(remarks.texts(whys))


def _grown(finding: Grown, values: dict[str, object]) -> str:
    legs, low, high = finding.legs, finding.low, finding.high
    why = [f"{trial}: {reasons(problems)}" for trial, problems in legs.left_out.items()]
    if legs.on_other_jvms:
        why.append(f"{legs.on_other_jvms} legs ran on another JVM")
    values |= {
        "what": finding.name.removeprefix("growth of "),
        "unsure": low is not None and high is not None and low <= 0 <= high,
        "in": finding.unit.removesuffix("/h"),
        "hours": legs.load_s / 3600,
        "uncollected": "collections" in finding.name and not legs.old_collected,
        "missing": legs.legs - legs.counted,
        "why": ", ".join(why),
    }
    values |= zip(("first", "settled", "last"), finding.levels or (), strict=False)
    code = "Unknown" if finding.value is None or finding.levels is None else "Grown"
    return say("findings", code, **values) + say("findings", "legs", **values)


def _tried(finding: Tried) -> Iterator[tuple[str, object]]:
    how = ["suspected"] * finding.suspected + ["named"] * (finding.named is not None)
    how += [f"{finding.named} evidence"] if finding.named else []
    yield "how", ", ".join(how)
    yield "resources", " and ".join(finding.resources)
    yield "change", " and ".join(map(_change, finding.changes))
    yield "doses", " and ".join(f"{dose:.1%}" for dose in finding.doses)
    yield "tie", reasons([finding.tie] if finding.tie else ())
    yield "ratios", _ratios(finding)
    lifted = finding.changes if finding.lifted else ()
    yield "lifts", " and ".join(f"{c.setting}={_number(c.lift)}{c.unit}" for c in lifted)
    yield "why", reasons(finding.why)
    yield "ended", reasons(finding.ended)
    yield "again", ", ".join(f"{count} {side}" for side, count in finding.again.items())


def _ratios(finding: Tried) -> str:
    if finding.value is None:
        return ""
    values = {
        "ratio": finding.value,
        "low": finding.low,
        "high": finding.high,
        "least": finding.least,
        "most": finding.at_most if finding.lifted else None,
    }
    values |= zip(("p95", "p95_low", "p95_high"), finding.p95 or (), strict=False)
    values |= zip(("without", "changed"), finding.goodput or (), strict=False)
    return say("findings", "ratios", **values)


def _change(change: SettingChange) -> str:
    if change.setting == "spin":
        return say("findings", "spin", step=change.step)
    now, step = _number(change.now), _number(change.step)
    return say("findings", "change", setting=change.setting, now=now, step=step, unit=change.unit)


def _number(value: float | str | None) -> str:
    return value if isinstance(value, str) else f"{value or 0:.10g}"
