"""The lab is claimed by one, however that one ends."""

import fcntl
import os
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.system import lock
from lab.system.lock import claimed
from support.locks import is_claimed


def test_a_second_claim_is_refused(tmp_path: Path) -> None:
    with claimed(tmp_path):
        assert is_claimed(tmp_path)
        with (
            pytest.raises(LabError, match="another measurement is under way; wait for its end"),
            claimed(tmp_path),
        ):
            pass
    assert not is_claimed(tmp_path)


def test_without_the_folder_nothing_is_held_and_nothing_refused(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with claimed(gone) as held, claimed(gone):
        assert held == ()


def test_a_folder_that_cannot_be_written_can_be_claimed(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        with claimed(tmp_path):
            assert is_claimed(tmp_path)
    finally:
        tmp_path.chmod(0o755)


def test_who_only_looks_refuses_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looker = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(looker, fcntl.LOCK_SH)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            os.close(looker)

    monkeypatch.setattr(lock.time, "sleep", pause)
    with claimed(tmp_path) as held:
        assert held
    assert len(pauses) == 2
