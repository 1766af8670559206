"""The judgement of the smoke tests on trials of a busy machine."""

import pytest

from support.stored import excused, last_tries


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        (["late: 3 s"], True),
        (["late: 3 s", "late: 4 s"], True),
        (["late: 3 s", "toxics changed"], False),
        (["toxics changed", "late: 3 s"], False),
        ([""], False),
        ([], False),
    ],
)
def test_every_reason_must_be_an_allowed_one(reasons: list[str], expected: bool) -> None:
    assert excused(reasons, ("late: ", "cold: ")) == expected


def test_of_a_trial_that_was_measured_again_the_last_try_counts() -> None:
    rows = [{"trial": name} for name in ("01-a", "01-a-again", "02-b")]
    assert [row["trial"] for row in last_tries(rows)] == ["01-a-again", "02-b"]
