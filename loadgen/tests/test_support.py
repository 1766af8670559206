"""The judgement of the smoke tests on trials of a busy machine."""

from support.stored import excused, last_tries


def test_every_reason_must_be_an_allowed_one() -> None:
    allowed, others = (["late"], ["late", "cold"]), (["late", "toxics"], ["toxics"], [])
    assert [codes for codes in allowed if not excused(codes, ("late", "cold"))] == []
    assert [codes for codes in others if excused(codes, ("late", "cold"))] == []


def test_of_a_trial_that_was_measured_again_the_last_try_counts() -> None:
    rows = [{"trial": name} for name in ("01-a", "01-a-again", "02-b")]
    assert [row["trial"] for row in last_tries(rows)] == ["01-a-again", "02-b"]
