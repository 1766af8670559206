"""Every fault that `.ci/faults.sh` planted was caught: its trial is kept, and invalid for it."""

import pytest

from support.stored import rows_of


@pytest.mark.parametrize(
    ("concurrency", "reason"),
    [
        ("40", "toxics changed during the trial: "),
        ("200", "the generator was starved: its CPU quota stopped it for"),
        ("2", "too few answers: "),
        ("42", "the server stopped answering for "),
        ("43", "the JVM restarted during the trial"),
        ("44", "cold JVM: its JVM was replaced after it was warmed up"),
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
