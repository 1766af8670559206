"""The tables of findings: planted bottlenecks, memory per connection, units of control parts."""

from typing import Any

from lab.model import Dosed, Drift, Finding, InUnits, Line, Named, PerConnection
from lab.report import density, findings, planted, ruler
from lab.report.blocks import Bullets
from support.results import result, table, text


def named(name: str, **changes: Any) -> Named:
    values: dict[str, Any] = dict.fromkeys(("value", "low", "high", "planted", "severity", "mode"))
    values |= {"server": "", "launch": 0, "unit": "share", "trials": 3, "right": 1}
    values |= {"strong": 1, "missed": {"02-missed": "unknown", "05-sure": "host CPU"}}
    return Named(name=name, **(values | {"sure": ("05-sure",)} | changes))


def dosed(dose: float, **answers: int) -> Dosed:
    counts = {name.replace("_", " "): count for name, count in answers.items()}
    return Dosed("dose", "a", 0, None, "share", None, None, "closed", dose, counts, 0.87, None)


PLANTED = (
    named("planted"),
    named("planted clearly", missed={}, sure=(), right=3),
    named("planted dose", planted="worker pool", severity=2.0, mode="closed"),
    named("planted resource", planted="worker pool"),
    dosed(0.0, within=2),
    dosed(0.1, worse=1, cannot_tell=1),
)


def test_a_finding_is_a_line_after_whose_it_is() -> None:
    plain = Finding("growth", "a", 2, None, "", None, None)
    lines = findings.lines((plain, *PLANTED))
    assert lines[0] == "a #2: growth: unknown"
    # All planted trials, those that clearly limit, and each dose; not each resource.
    assert len(lines) == 5
    assert lines[1].startswith("3 planted trials: 1 of 3 (33% [1%, 91%]) verdicts are right, 1 of")
    assert lines[4] == "closed, a dose of 10%: cannot tell 1×, worse 1×"


def test_resources_severities_and_doses_are_tables() -> None:
    section = planted.section(result(findings=PLANTED))
    pool, severe = table(section.blocks, "Named")
    assert (pool["right"], pool["else"]) == ("1 of 3 (33% [1%, 91%])", "host CPU 1×, unknown 1×")
    assert (pool["severity"], severe["severity"], severe["load"]) == ("–", "2.0", "closed")
    same, tenth = table(section.blocks, "Doses")
    assert (tenth["median ratio of goodput"], tenth["of p95"]) == ("0.870", "–")
    assert (same["dose"], tenth["answers"]) == ("0%", "cannot tell 1×, worse 1×")
    [bullets] = [block for block in section.blocks if isinstance(block, Bullets)]
    shares = ("0 of 2 (0% [0%, 84%])", "1 of 2 (50% [1%, 99%])", "1 of 4 (25% [1%, 81%])")
    assert [share in line for share, line in zip(shares, bullets.lines, strict=True)] == [True] * 3
    # C. J. Clopper and E. S. Pearson: 0 of 60 may be 6 %.
    assert planted.share(0, 60) == "0 of 60 (0% [0%, 6%])"
    assert planted.share(0, 0) == "0 of 0"


def slope(memory: str, value: float | None, *ends: float) -> PerConnection:
    low, high = ends or (None, None)
    return PerConnection(memory, "a", 0, value, "bytes/connection", low, high, 12, 2000, 8000)


def test_each_memory_of_each_server_is_a_row() -> None:
    found = (slope("live heap", 1439.4, 1247.2, 1489.0), slope("resident", None))
    heap, resident = table(density.section(result(findings=found)).blocks, "Memory per connection")
    assert (heap["bytes each"], heap["connections"]) == ("1,439 [1,247, 1,489]", "2,000–8,000")
    assert resident["bytes each"] == "–"


UNITS = InUnits(
    "units", "netty", 0, 0.567, "control parts", 0.55, 0.6,
    lane="event-loop", server_us=61.2, control_us=107.9, busy=0.9, broke=True, cpus=2,
    line=Line(b=156e-6, a=0.43, rates=7),
)  # fmt: skip


def test_a_server_has_its_cost_in_units_and_the_rate_to_expect_elsewhere() -> None:
    section = ruler.section(result(findings=(UNITS,)))
    [found] = table(section.blocks, "CPU per request in units")
    assert found["CPU per request"] == "0.57 [0.55, 0.60]"
    assert found["in units of"] == "control parts under event-loop"
    assert (found["server / unit µs"], found["host busy"]) == ("61.2 / 108", "90% where it broke")
    # (2 · 0.9 / f - 0.43) / 156 µs, in two digits.
    rates = ("req/s on 1 CPU", "req/s on 4 CPUs", "req/s on 8 CPUs")
    assert [found[rate] for rate in rates] == ["3,000", "20,000", "43,000"]
    assert found["on CPUs f times as slow"] == "(CPUs × 0.90 / f -0.43) / 156 µs"
    # The unit of another lane has no interval, and the reader learns why.
    assert "No interval is given in units of event-loop" in text(section)


def test_other_kinds_have_none_of_these() -> None:
    for part in (planted, density, ruler):
        assert text(part.section(result())) == ""


def test_a_drift_is_named_with_its_share() -> None:
    found = Drift("drift", "", 0, 0.18, "share", None, None, "ref_net", (1.0, 1.0, 1.1, 1.18))
    (line,) = ruler.drifts([UNITS, found])
    assert "18%" in line
    assert "ref_net" in line
