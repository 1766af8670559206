"""manifest.json: what is written comes back, and what is none is refused."""

from pathlib import Path

import pytest

from lab.errors import LabError
from lab.store import manifest
from lab.store.records import read_object, write_json
from support.fakes import START
from support.runs import EXPERIMENT, NAME, write_manifest


def test_a_manifest_comes_back_as_it_was(tmp_path: Path) -> None:
    run_dir = write_manifest(tmp_path)
    read = manifest.read(run_dir)
    assert read.experiment == EXPERIMENT
    assert (read.run, read.started_at, read.status) == (NAME, START, "complete")
    assert read.servers["a"].identity.model == "a"
    manifest.write(tmp_path, read)
    assert (tmp_path / "manifest.json").read_bytes() == (run_dir / "manifest.json").read_bytes()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        *(({"format": value}, "the lab reads format 1 only") for value in (2, None, ...)),
        ({"experiment": {"connections": 8000}}, "is not a run of trials"),
        ({"experiment": None}, "is not a run of trials"),
        ({"experiment": {"concurrencies": [1]}}, "missing required field"),
        ({"status": "asleep"}, "Invalid enum value 'asleep'"),
        ({"colour": "red"}, "manifest.json: Manifest: .* unknown field `colour`"),
        ({"experiment": {"concurrencies": [1], "kind": []}}, "Expected `str`, got `array`"),
        (None, "is not a run of the lab"),
    ],
)
def test_a_manifest_that_cannot_be_read_says_why(
    tmp_path: Path, changes: dict[str, object] | None, said: str
) -> None:
    """A value of `...` is no field at all, and None no file."""
    path = write_manifest(tmp_path) / "manifest.json"
    fields = {**read_object(path), **(changes or {})}
    write_json(path, {name: value for name, value in fields.items() if value is not ...})
    if changes is None:
        path.unlink()
    with pytest.raises(LabError, match=said) as failure:
        manifest.read(path.parent)
    assert "\n" not in str(failure.value)
