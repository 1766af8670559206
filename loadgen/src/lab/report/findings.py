"""Findings in words, made of their codes and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from lab.model import (
    AS_IT_IS,
    Condition,
    Disturbance,
    Dosed,
    Drift,
    Experiment,
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
from lab.report import capacity, density, planted, remarks
from lab.report.result import Answers

# Findings that have answers, tables or sections of their own.
ELSEWHERE = (Sustained, PerConnection, InUnits, Drift)
# Why there is no finding, or what it rests on, by code. Values are written as numbers with two
# decimals where a template does not say otherwise.
WHY = {
    # Recovery and growth.
    "no-disturbance": "no {disturbance} was made in the trial",
    "no-calm": "{rps:.0f} of {offered_rps} req/s were answered before the first disturbance: there "
    "is no calm to come back to",
    "calm-few-answers": "{rps:.0f} answers a second before the first disturbance, and the p95 of a "
    "second needs {needed}",
    "load-not-counted": "its load is not counted",
    "jvm-unknown": "which JVM it ran on is unknown, without a JMX exporter",
    # Of a step of explain.
    "little-room": "together, as {alone} alone leaves room for ×{times:.2f} only",
    "named-with-change": "together, as {named} was named with {changed} changed",
    "goodput-unknown": "goodput is unknown",
    "few-pairs": "no interval: it takes {needed} pairs, not {pairs}",
    "rises": "the whole interval is above {margin:g}",
    "no-rise": "the whole interval is at most {margin:g}: more of it is no help",
    "may-rise": "the interval reaches from {low:.2f} to above {margin:g}",
    "falls": "goodput falls by {fall:.2f} [{low:.2f}, {high:.2f}] of the share of the CPUs that is "
    "taken: it follows them",
    "no-fall": "goodput falls by {fall:.2f} [{low:.2f}, {high:.2f}] of the share of the CPUs that "
    "is taken: it does not follow them",
    "may-fall": "goodput falls by {fall:.2f} [{low:.2f}, {high:.2f}] of the share of the CPUs that "
    "is taken",
    "falls-more": "goodput falls by {fall:.2f} [{low:.2f}, {high:.2f}] of the share of the CPUs "
    "that is taken: the spinner does more than take CPUs",
    "small-dose": "the spinner got {share:.0%} of the CPUs only",
    "shorter-than-saved": "a request took no longer than the {saved_ms} ms taken away from it",
    "rise-by-time": "not surely more than the time that was taken away: {saved_ms} ms less on the "
    "path of each request give ×{times:.2f} by themselves",
    "cpus-named": "CPU time went free with the change, and host CPU was named without it",
    "cpus-unknown": "CPU time went free with the change, and how busy the CPUs were is unknown",
    "cpus-busy": "CPU time went free with the change, and the CPUs were at least {share:.0%} busy",
    "unseen": "no rise, or the service does not take {variable}, which the lab cannot see",
    "few-threads": "no rise, or too little for it: its JVM goes on with {listed}",
    "no-room": "there is room for ×{times:.2f} only ({bound}: {formula})",
    "small-step": "the step allows ×{times:.2f} at most",
    "uneven-tries": "measured again: {before} trials without and {after} with the change, of "
    "{pairs} each, which may decide the answer",
    "side-invalid": "{tries} measurements of the side “{side}” were invalid",
    # Why a resource was not changed.
    "no-lever": "the lab has no way to change the {resource}",
    "no-lever-of-subject": "its subject has no [levers] for the {resource} that the lab can use",
    "no-setting": "this server has no setting {setting}",
    "at-most": "{setting} is {value:g} already, the most there is",
    "fixed-carriers": "this JDK does not let the number of its carrier threads be changed",
    "lock-in-code": "the lock is in the code: only another version of it can tell",
    "already-direct": "calls go to the downstream without Toxiproxy already",
    "not-through-proxy": "this server does not call the lab's downstream through Toxiproxy",
    "toxics-in-force": "without Toxiproxy its toxics would be gone too: remove them first",
    # How an inquiry ended.
    "machine": "the machine itself is the limit",
    "follows-cpus": "the machine itself is the limit: goodput follows its CPUs",
    "load-is-limit": "the load itself is the limit ({rps:.0f}[ of at most {most_rps:.0f}] req/s), "
    "no resource binds below it",
    "unnamed": "the evidence names no resource",
    "steps-over": "not tried, {steps} steps were asked for",
    "not-proven": "not proven",
    "not-confirmed": "{resources} was named, and is {answer}",
    "invalid-twice": "not proven, as its trials were invalid",
    "not-finished": "not finished after {trials} trials, {arm} is next",
}
UNITS = {"s": "{:.1f} s", "×": "×{:.2f}"}
_OPTIONAL = re.compile(r"\[([^\[\]]*\{most_rps[^\[\]]*)\]")


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


def answers(experiment: Experiment, findings: Sequence[Finding]) -> Answers:
    """The lines that come first on the console and in the reports; none if the findings are of no
    kind that has any."""
    if any(isinstance(finding, Sustained) for finding in findings):
        return capacity.answers(experiment, findings)
    if any(isinstance(finding, PerConnection) for finding in findings):
        return density.answers(experiment, findings)
    return ()


def text(finding: Finding) -> str:
    match finding:
        case NotFound():
            return f"no {finding.name}: {reasons(finding.problems)}"
        case Recovered():
            return _recovered(finding)
        case Recoveries():
            return _recoveries(finding)
        case Grown():
            return "; ".join(_grown(finding))
        case Tried():
            return _tried(finding)
        case Limit():
            return _limit(finding)
    ends = ""
    if finding.low is not None and finding.high is not None:
        ends = f" [{finding.low:g}, {finding.high:g}]"
    value = "unknown" if finding.value is None else f"{finding.value:g}{ends} {finding.unit}"
    return f"{finding.name}: {value}"


def reasons(found: Iterable[Remark]) -> str:
    return "; ".join(map(_why, found))


def _why(remark: Remark) -> str:
    template = WHY.get(remark.code)
    if template is None:
        return remarks.text(remark)
    values = dict(remark.values)
    template = _OPTIONAL.sub(r"\1" if "most_rps" in values else "", template)
    listed = " and ".join(f"{count} {name}" for name, count in values.items())
    return template.format(**values, listed=listed)


def _recovered(finding: Recovered) -> str:
    disturbance, felt = finding.disturbance, finding.felt
    worst = finding.recovery.worst_ms
    parts = [
        "a second had no good answer"
        if worst is None
        else f"p95 {worst:.0f} ms in the worst second"
    ]
    if felt.slowest_ms is not None:
        parts.append(f"slowest good answer {felt.slowest_ms:.0f} ms")
    if felt.errors:
        parts.append(f"{felt.errors} of {felt.answers} answers were errors")
    lost = ""
    if felt.timeouts or felt.lost:
        lost = (
            f"; in the whole run {felt.timeouts} requests timed out, {felt.lost} lost their "
            "connection"
        )
    return f"{_named(disturbance)}: {', '.join(parts)}; {_after(finding)}{lost}"


def _named(disturbance: Disturbance) -> str:
    changes = ", then ".join(disturbance.changes)
    what = f" ({changes}, {disturbance.lasted_s:.0f} s)" if changes else ""
    return f"{disturbance.name} {disturbance.number} of {disturbance.count}{what}"


def _after(finding: Recovered) -> str:
    calm, recovery = finding.calm, finding.recovery
    limit = f"{calm.limit_ms:.0f} ms (p95 of the calm {calm.p95_ms:.0f} ms)"
    noise = ""
    if calm.above:
        noise = f"; {calm.above} of {calm.seconds} s of the calm were above that, too"
    if recovery.after_s is None:
        return f"not back to {limit} in {recovery.watched_s:.0f} s{noise}"
    again = ""
    if recovery.above:
        again = f", and {recovery.above} of the {recovery.left} s after these above it again"
    return (
        f"back to {limit} for {finding.steady_s} s on end after {recovery.after_s:.1f} s"
        f"{again}{noise}"
    )


def _recoveries(finding: Recoveries) -> str:
    launches = f"{finding.launches} launch{'es' if finding.launches > 1 else ''}"
    if finding.recovered < finding.launches:
        launches = f"{finding.recovered} of {launches}"
    over = f"median over {finding.count} {finding.disturbance}s in {launches}"
    if finding.failed:
        over += f", and {finding.failed} in which the server failed"
    if finding.value is None:
        return f"not recovered, {over}"
    spread = "no interval"
    if finding.low is not None and finding.high is not None:
        spread = f"95 % interval {finding.low:.1f} to {finding.high:.1f} s"
    return f"recovered after {finding.value:.1f} s, {over}, {spread}"


def _grown(finding: Grown) -> Iterator[str]:
    what, legs = finding.name.removeprefix("growth of "), finding.legs
    if finding.value is None or finding.levels is None:
        yield f"{what}: growth unknown, too few samples"
    else:
        first, settled, last = (f"{level:,.0f}" for level in finding.levels)
        spread = "no interval"
        if finding.low is not None and finding.high is not None:
            shown = "" if finding.low > 0 or finding.high < 0 else ": no growth shown"
            spread = f"95 % interval {finding.low:+.2f} to {finding.high:+.2f}{shown}"
        unit = finding.unit.removesuffix("/h")
        yield f"{what}: {finding.value:+.2f} {finding.unit} ({spread})"
        yield f"at first {first} {unit}, {settled} after a third of the load, {last} at the end"
        yield f"over {legs.load_s / 3600:.2f} h of load"
    if "collections" in finding.name and not legs.old_collected:
        yield "no leg collected the old generation, so what died there within it counts"
    if legs.interruptions:
        yield f"interrupted {legs.interruptions} times, and the load meanwhile is not counted"
    if legs.counted < legs.legs:
        why = [f"{trial}: {reasons(problems)}" for trial, problems in legs.left_out.items()]
        if legs.on_other_jvms:
            why.append(f"{legs.on_other_jvms} legs ran on another JVM")
        yield f"{legs.legs - legs.counted} of {legs.legs} legs left out: {', '.join(why)}"


def _tried(finding: Tried) -> str:
    named = [f"{finding.named} evidence"] if finding.named else []
    how = ["suspected"] * finding.suspected + (
        ["named", *named] if finding.named is not None else []
    )
    head = f"{finding.name}, {' and '.join(finding.resources)}"
    head += f" ({', '.join(how)})" if how else ""
    change = " and ".join(_change(each) for each in finding.changes)
    if finding.doses:
        change += f" ({' and '.join(f'{dose:.1%}' for dose in finding.doses)} measured)"
    if finding.tie:
        change += f" ({_why(finding.tie)})"
    parts = [f"{finding.answer}", *([change] if change else [])]
    if finding.value is not None:
        parts.append(", ".join(_ratios(finding)))
    if finding.lifted:
        parts.append(f"lifted to {' and '.join(map(_lifted, finding.changes))}")
    else:
        parts.append(reasons(finding.why))
    if finding.ended and finding.pairs:
        pairs = f"{finding.pairs} of {finding.planned} pairs count: then {reasons(finding.ended)}"
        parts.append(pairs)
    if finding.again:
        again = ", ".join(f"{count} {side}" for side, count in finding.again.items())
        parts.append(f"run again because invalid: {again}")
    return f"{head}: {'; '.join(parts)}"


def _ratios(finding: Tried) -> Iterator[str]:
    most = f" of at most ×{finding.at_most:.2f}" if finding.at_most and finding.lifted else ""
    least = "at least " if finding.least else ""
    yield f"goodput {least}{_ratio(finding.value or 0.0, finding.low, finding.high)}{most}"
    if finding.p95 is not None:
        yield f"p95 {_ratio(*finding.p95)}"
    if finding.goodput is not None:
        without, changed = finding.goodput
        yield f"{without:.0f} → {changed:.0f} req/s"


def _ratio(ratio: float, low: float | None, high: float | None) -> str:
    return (
        f"×{ratio:.2f}" if low is None or high is None else f"×{ratio:.2f} [{low:.2f}, {high:.2f}]"
    )


def _change(change: SettingChange) -> str:
    if change.setting == "spin":
        return f"up to {change.step:.0%} of the CPUs taken away"
    unit = f" {change.unit}" if change.unit else ""
    return f"{change.setting} {_number(change.now)} → {_number(change.step)}{unit}"


def _lifted(change: SettingChange) -> str:
    return f"{change.setting}={_number(change.lift)}{change.unit}"


def _number(value: float | str | None) -> str:
    return value if isinstance(value, str) else f"{value or 0:.10g}"


def _limit(finding: Limit) -> str:
    strength = f" ({finding.strength} evidence)" if finding.strength else ""
    again = f" (run again because invalid: {finding.again})" if finding.again else ""
    under = _under(finding.condition)
    return f"{finding.name}: {finding.resource}{strength}, {under}: {reasons(finding.why)}{again}"


def _under(condition: Condition) -> str:
    return "with the lab as it is" if condition == AS_IT_IS else f"with {condition.text}"
