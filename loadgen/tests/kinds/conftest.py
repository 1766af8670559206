"""Experiments in files, as a user writes them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lab.errors import WordError
from lab.kinds.kind import ToMeasure
from lab.kinds.plans import of_file
from lab.kinds.reading import Here
from lab.model import Experiment
from support.repo import REPO

SHIPPED = REPO / "experiments"
SERVERS = ("fixed-pool", "virtual-threads", "event-loop")
LIMIT = 200_000


def refusal(read: Callable[..., object], *given: object, **words: object) -> str:
    """The line that refuses words or a file."""
    with pytest.raises(WordError) as refused:
        read(*given, **words)
    said = str(refused.value)
    assert "\n" not in said
    assert refused.value.exit_code == 2
    return said


class Files:
    """A folder of experiments with one of them in it, for a machine that holds `limit` files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "experiments"
        self.folder.mkdir()
        self.limit = LIMIT

    def read(self, text: str, **words: str) -> ToMeasure:
        (self.folder / "x.toml").write_text(text)
        return of_file({"EXP": "x", **words}, Here(SERVERS, self.limit), self.folder)

    def experiment(self, text: str, **words: str) -> Experiment:
        found, _ = self.read(text, **words)
        return found

    def refusal(self, text: str, **words: str) -> str:
        return refusal(self.read, text, **words)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)
