"""The section on planted trials: by resource, by severity, every trial that was not right."""

from typing import Any

from lab.model import Dosed, Named
from lab.report.markdown import section as written
from lab.report.planted import lines, section, share


def named(name: str, **changes: Any) -> Named:
    values: dict[str, Any] = dict.fromkeys(("value", "low", "high", "planted", "severity", "mode"))
    values |= {"server": "", "launch": 0, "unit": "share", "trials": 3, "right": 1}
    values |= {"strong": 1, "missed": {"02-missed": "unknown", "05-sure": "host CPU"}}
    return Named(name=name, **(values | {"sure": ("05-sure",)} | changes))


def dosed(dose: float, **answers: int) -> Dosed:
    counts = {name.replace("_", " "): count for name, count in answers.items()}
    return Dosed("dose", "a", 0, None, "share", None, None, "closed", dose, counts, 0.87, None)


FOUND = (
    named("planted"),
    named("planted clearly", missed={}, sure=(), right=3),
    named("planted resource", planted="worker pool"),
    named("planted dose", planted="worker pool", severity=2.0, mode="closed"),
    dosed(0.0, within=2),
    dosed(0.1, worse=1, cannot_tell=1),
)


def test_all_trials_and_each_dose_are_a_line() -> None:
    assert tuple(lines(FOUND)) == (
        "3 planted trials: 1 of 3 (33% [1%, 91%]) verdicts are right, 1 of them with strong "
        "evidence; 1 are wrong with strong evidence",
        "3 planted trials that clearly limit: 3 of 3 (100% [29%, 100%]) verdicts are right, 1 of "
        "them with strong evidence; 0 are wrong with strong evidence",
        "closed, a dose of 0%: within 2×",
        "closed, a dose of 10%: cannot tell 1×, worse 1×",
    )


def test_resources_severities_and_misses_are_tables() -> None:
    text = written(section(FOUND))
    assert "| worker pool | 1 of 3 (33% [1%, 91%]) | 1 | host CPU 1×, unknown 1× |" in text
    assert "| worker pool | 2.0 | closed | 1 of 3 (33% [1%, 91%]) | 1 |" in text
    # What is wrong with strong evidence comes first, and each trial once.
    misses = text.partition("| not right |")[2]
    assert misses.index("05-sure") < misses.index("02-missed")
    assert text.count("05-sure") == 1


def test_doses_are_counted_with_their_intervals() -> None:
    text = written(section(FOUND))
    assert "| closed | 10% | 0.870 | – | cannot tell 1×, worse 1× |" in text
    assert "A difference where there is none: 0 of 2 (0% [0%, 84%])." in text
    assert "A dose of 10% or more called worse: 1 of 2 (50% [1%, 99%])." in text
    assert "Cannot tell: 1 of 4 (25% [1%, 81%])" in text
    # Other kinds have no such section.
    assert written(section(())) == ""


def test_an_interval_is_exact() -> None:
    # C. J. Clopper and E. S. Pearson: 0 of 60 may be 6 %.
    assert share(0, 60) == "0 of 60 (0% [0%, 6%])"
    assert share(0, 0) == "0 of 0"
