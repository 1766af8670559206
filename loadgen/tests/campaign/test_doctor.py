"""What doctor says of the load engines."""

from pathlib import Path

from lab.campaign.doctor import examine
from support.fakes import FakeEngine, FakeLab


def engines_said(lab: FakeLab, results: Path, *engines: FakeEngine) -> list[str]:
    found = (str(one) for one in examine(lab.stack, ("a",), results, 20_000, 2, engines))
    return [
        one for one in found if one[6:].startswith(("engine ", "no engine ", "no load engine "))
    ]


def test_an_engine_that_is_there_only_on_demand_is_no_warning(lab: FakeLab, tmp_path: Path) -> None:
    oha, wrk = FakeEngine("oha", here=False), FakeEngine("wrk", here=False)
    assert engines_said(lab, tmp_path, FakeEngine(), oha, wrk) == [
        "ok    engine wrk2: fake 1.0",
        "ok    no engine oha here: it is built where make is given "
        "OHA_IMAGE=ghcr.io/hatoo/oha:1.12.0",
        "warn  engine wrk does not run here",
    ]


def test_without_any_engine_nothing_can_be_measured(lab: FakeLab, tmp_path: Path) -> None:
    assert engines_said(lab, tmp_path, FakeEngine("oha", here=False)) == [
        "FAIL  no load engine for MODE=open runs here, not even pacer"
    ]
