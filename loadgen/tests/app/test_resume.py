"""A run that was interrupted goes on, in the lab it began in."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from lab.errors import LabError
from support.bench import Bench
from support.runs import IMAGES, with_images

TRIALS = ["01-a-open-c200", "02-b-open-c200", "03-a-closed-c200", "04-b-closed-c200"]
TWO_LOADS: dict[str, Any] = {"launches": 1, "modes": ("closed",), "concurrencies": (100, 200)}


@pytest.mark.parametrize("rows", [2, 1], ids=["interrupted", "killed between raw data and row"])
def test_a_resumed_run_has_the_trials_of_its_rows_and_makes_the_others(
    ready: Bench, rows: int
) -> None:
    before = "".join(ready.interrupt().splitlines(keepends=True)[: 1 + rows])
    (ready.run_dir / "trials.csv").write_text(before)
    assert ready.resume() == 0
    assert ready.csv.startswith(before)
    assert ready.column("trial") == TRIALS
    assert len(ready.lab.system.started) == 3 + len(TRIALS) - rows
    # What the others left is kept aside.
    left = {path.parent.name for path in ready.run_dir.glob("abandoned/*/*/fake.txt")}
    assert left == {*TRIALS[rows:3]}
    assert ready.manifest["status"] == "complete"
    with pytest.raises(LabError, match="nothing is left"):
        ready.resume()


def test_what_was_cut_off_after_its_load_is_seen_by_prometheus_before_the_run_goes_on(
    ready: Bench,
) -> None:
    ready.interrupt()
    late: list[str] = []
    ready.observe = lambda record, *_: late.append(record.plan.trial)
    assert ready.resume() == 0
    kept = [name for name in ready.column("trial") if name in TRIALS[:2]]
    assert late[: len(kept)] == kept


def test_a_jvm_that_is_replaced_with_an_interruption_is_warm_and_the_next_launch_fresh(
    ready: Bench,
) -> None:
    ready.interrupt(**{**TWO_LOADS, "launches": 2})
    before = list(ready.lab.restarts)
    ready.resume()
    assert before == ["a", "b"]
    # The third trial, of the first launch, begins on another JVM, and the second launch too.
    assert ready.lab.restarts[2:] == ["a", "b", "b", "a"]
    assert ready.warmed == ready.lab.restarts
    assert ready.cells("launch", "valid") == ", ".join(["1 true"] * 4 + ["2 true"] * 4)


def test_a_run_of_fresh_jvms_goes_on_without_the_knob_it_began_with(ready: Bench) -> None:
    ready.without_knobs()
    ready.interrupt(**TWO_LOADS)
    assert ready.resume() == 0
    assert ready.column("valid") == ["true"] * 4


def placed(ready: Bench, **changes: object) -> None:
    """The run is given another place than before."""
    ready.place = copy.replace(ready.place, **changes)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r.lab.settings.update(b={"downstream_connections": 7}), "settings: .* of b was"),
        (lambda r: setattr(r.lab, "delay_ms", 100), "delay: the downstream's delay"),
        (lambda r: r.on(commit="beef"), "commit: commit was c0ffee"),
        (lambda r: r.on(kernel=None), "host: kernel was 6.1 .* is not recorded now"),
        (lambda r: r.on(images={**IMAGES, "x/toxiproxy:2": {"id": "2"}}), "images: toxiproxy was"),
        (lambda r: placed(r, file_limit=1024), "limits: open_files was 20000"),
        (lambda r: placed(r, settings=("NOFILE=300",)), "give these again: none"),
    ],
    ids=["settings", "delay", "commit", "kernel", "image", "open files", "words of make"],
)
def test_no_resume_in_another_lab(ready: Bench, change: Callable[[Bench], None], said: str) -> None:
    before = ready.interrupt()
    change(ready)
    with pytest.raises(LabError, match=said):
        ready.resume()
    assert ready.csv == before


@pytest.mark.parametrize("code", [{"commit_dirty": True}, {"commit": "unknown"}])
def test_unknown_code_goes_on_with_its_images_only(ready: Bench, code: dict[str, object]) -> None:
    ready.on(**code)
    ready.interrupt()
    for image in ("a", "loadgen"):
        ready.on(**{**with_images(image), **code})
        with pytest.raises(LabError, match=f"images: {image} was"):
            ready.resume()
    ready.on(**code)
    assert ready.resume() == 0


def test_it_goes_on_under_the_settings_of_make_that_it_began_with(ready: Bench) -> None:
    placed(ready, settings=("NOFILE=300",))
    ready.interrupt()
    assert f"make run RESUME={ready.run_dir.name} NOFILE=300 goes on" in ready.text.getvalue()
    for settings in ((), ("NOFILE=400",), ("NOFILE=300", "LOADGEN_CPUSET=1")):
        placed(ready, settings=settings)
        with pytest.raises(LabError, match="give these again: NOFILE=300"):
            ready.resume()
