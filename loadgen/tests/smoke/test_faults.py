"""Every fault that `.ci/faults.sh` planted was caught: its trial is kept, and invalid for it."""

import pytest

from support.stored import rows_of


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
    (row,) = [row for row in rows_of("faults") if row["concurrency"] == concurrency]
    assert row["valid"] == "false"
    assert reason in row["invalid_reasons"]


def test_unequal_limits_make_every_row_invalid() -> None:
    rows = rows_of("unequal")
    assert len(rows) == 2
    for row in rows:
        assert row["valid"] == "false"
        assert "downstream_timeout_ms" in row["invalid_reasons"]
        assert "cpu_quota" in row["invalid_reasons"]
