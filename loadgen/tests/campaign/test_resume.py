"""A run that was interrupted goes on, in the lab it began in."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from lab.errors import LabError
from support.bench import Bench
from support.runs import IMAGES, with_images

TRIALS = ["01-a-open-c200", "02-b-open-c200", "03-a-closed-c200", "04-b-closed-c200"]


def test_a_resumed_run_neither_loses_nor_repeats_a_trial(ready: Bench) -> None:
    before = ready.interrupt()
    assert ready.resume() == 0
    assert ready.csv.startswith(before)
    assert ready.column("trial") == TRIALS
    assert len(ready.lab.system.started) == 5  # the third trial twice
    # What the unfinished one left is kept aside.
    assert (ready.run_dir / "abandoned" / f"{TRIALS[2]}-1" / "fake.txt").exists()
    assert ready.manifest["status"] == "complete"
    assert "RESUME=" in ready.text.getvalue()
    # Nothing is left.
    with pytest.raises(LabError, match="nothing is left"):
        ready.resume()


def test_a_trial_that_ended_without_its_row_is_not_run_again(ready: Bench) -> None:
    # Killed between the raw data and the row.
    lines = ready.interrupt().splitlines(keepends=True)
    (ready.run_dir / "trials.csv").write_text("".join(lines[:2]))
    ready.resume()
    assert ready.csv.startswith("".join(lines))
    assert len(ready.lab.system.started) == 5


def placed(ready: Bench, **changes: object) -> None:
    """The run is given another place than before."""
    ready.place = dataclasses.replace(ready.place, **changes)


TWO_LOADS: dict[str, Any] = {"launches": 1, "modes": ("closed",), "concurrencies": (100, 200)}


def test_a_launch_goes_on_with_its_jvms_after_a_resume(ready: Bench) -> None:
    ready.interrupt(**TWO_LOADS)
    ready.resume()
    assert ready.lab.restarts == ["a", "b"]
    # They are warm.
    assert ready.warmed == ["a", "b"]
    assert len({(at["server"], at["jvm_started_ms"]) for at in ready.trials}) == 2


def test_a_jvm_that_is_another_now_is_made_fresh_after_a_resume(ready: Bench) -> None:
    ready.interrupt(**TWO_LOADS)
    ready.lab.new_jvm("b")
    ready.resume()
    assert ready.lab.restarts == ["a", "b", "b"]


def test_the_next_launch_is_fresh_after_a_resume_too(ready: Bench) -> None:
    ready.interrupt(launches=2, modes=("closed",))
    restarts = list(ready.lab.restarts)
    ready.resume()
    # The third trial, b in its second launch, had its JVM, and no row yet.
    assert restarts == ["a", "b", "b"]
    assert ready.lab.restarts == ["a", "b", "b", "b", "a"]


def test_a_run_of_fresh_jvms_goes_on_without_the_knob_it_began_with(ready: Bench) -> None:
    ready.without_knobs()
    ready.interrupt(**TWO_LOADS)
    assert ready.resume() == 0
    assert ready.column("valid") == ["true"] * 4


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r.lab.settings.update(b={"downstream_connections": 7}), "b: downstream_conn"),
        (lambda r: setattr(r.lab, "delay_ms", 100), "the downstream's delay"),
        (lambda r: r.on(commit="beef"), "commit changed"),
        (lambda r: r.on(kernel=None), "the host's kernel was not recorded"),
        (lambda r: r.on(images={**IMAGES, "x/toxiproxy:2": {"id": "2"}}), "image of toxiproxy"),
        (lambda r: placed(r, file_limit=1024), "open_files"),
    ],
    ids=["settings", "delay", "commit", "kernel", "image", "open files"],
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
        with pytest.raises(LabError, match=f"the image of {image} changed"):
            ready.resume()
    ready.on(**code)
    assert ready.resume() == 0


def test_it_goes_on_under_the_settings_of_make_that_it_began_with(ready: Bench) -> None:
    placed(ready, settings=("NOFILE=300",))
    ready.interrupt()
    assert f"make run RESUME={ready.run_dir.name} NOFILE=300 goes on" in ready.text.getvalue()
    for now, said in (
        ((), "it began with NOFILE=300; give it again"),
        (("NOFILE=400",), "it began with NOFILE=300; give it again"),
        (("NOFILE=300", "LAB_PROBE_RPS=1"), "it began without LAB_PROBE_RPS=1; leave it out"),
    ):
        placed(ready, settings=now)
        with pytest.raises(LabError, match=said):
            ready.resume()
    placed(ready, settings=("NOFILE=300",))
    assert ready.resume() == 0
