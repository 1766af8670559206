"""What doctor says of the load engines."""

from pathlib import Path

import pytest

from lab.campaign.doctor import examine
from support.fakes import FakeEngine, FakeLab

NO_WRK2 = (
    "ok    no engine wrk2 here: it is there where WRK2_IMAGE= in .env names an image with it, "
    "or nixos/nix can be pulled (amd64)"
)


@pytest.mark.parametrize(
    ("engines", "said"),
    [
        # Not every machine has wrk2; pacer every machine should have.
        ({"wrk2": False, "pacer": True}, [NO_WRK2, "ok    engine pacer: fake 1.0"]),
        (
            {"wrk2": True, "pacer": False},
            ["ok    engine wrk2: fake 1.0", "warn  engine pacer does not run here"],
        ),
        ({"wrk2": False}, ["FAIL  no load engine runs here, not even pacer"]),
    ],
)
def test_an_engine_is_said_to_run_here_or_not(
    lab: FakeLab, tmp_path: Path, engines: dict[str, bool], said: list[str]
) -> None:
    fakes = [FakeEngine(name, here=here) for name, here in engines.items()]
    found = [str(finding) for finding in examine(lab.stack, ("a",), tmp_path, 20_000, 2, fakes)]
    begins = ("engine ", "no engine ", "no load engine ")
    assert [line for line in found if line[6:].startswith(begins)] == said
