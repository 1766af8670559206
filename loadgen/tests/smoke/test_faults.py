"""Every fault that `.ci/faults.sh` planted was caught: its trial is kept, and invalid for it."""

import pytest

from support.stored import Run


@pytest.mark.parametrize(
    ("concurrency", "reason"),
    [
        ("40", "toxics-touched"),
        ("200", "generator-throttled"),
        ("2", "few-answers"),
        ("42", "server-silent"),
        ("43", "jvm-restarted"),
        ("44", "cold-replaced"),
    ],
)
def test_a_planted_fault_is_the_reason(concurrency: str, reason: str) -> None:
    (row,) = [row for row in Run("faults").rows if row["concurrency"] == concurrency]
    assert row["valid"] == "false"
    assert reason in row["invalid_reasons"]


def test_unequal_limits_make_every_row_invalid() -> None:
    rows = Run("unequal").rows
    assert [row["valid"] for row in rows] == ["false", "false"]
    for row in rows:
        assert "downstream_timeout_ms" in row["invalid_reasons"]
        assert "cpu_quota" in row["invalid_reasons"]
