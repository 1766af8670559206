"""What doctor says of the load engines."""

from pathlib import Path

from lab.campaign.doctor import examine
from support.fakes import FakeEngine, FakeLab


def engines_said(lab: FakeLab, results: Path, *engines: FakeEngine) -> list[str]:
    found = (str(one) for one in examine(lab.stack, ("a",), results, 20_000, 2, engines))
    return [
        one for one in found if one[6:].startswith(("engine ", "no engine ", "no load engine "))
    ]


def test_an_engine_that_not_every_machine_has_is_no_warning(lab: FakeLab, tmp_path: Path) -> None:
    wrk2, pacer = FakeEngine("wrk2", here=False), FakeEngine("pacer")
    assert engines_said(lab, tmp_path, wrk2, pacer) == [
        "ok    no engine wrk2 here: it is there where WRK2_IMAGE= in .env names an image with it, "
        "or nixos/nix can be pulled (amd64)",
        "ok    engine pacer: fake 1.0",
    ]


def test_an_engine_that_every_machine_should_have_is_one(lab: FakeLab, tmp_path: Path) -> None:
    assert engines_said(lab, tmp_path, FakeEngine(), FakeEngine("pacer", here=False)) == [
        "ok    engine wrk2: fake 1.0",
        "warn  engine pacer does not run here",
    ]


def test_without_any_engine_nothing_can_be_measured(lab: FakeLab, tmp_path: Path) -> None:
    assert engines_said(lab, tmp_path, FakeEngine("wrk2", here=False)) == [
        "FAIL  no load engine runs here, not even pacer"
    ]
