"""A run that was interrupted goes on, in the lab it began in."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from lab.errors import LabError
from support.bench import Bench
from support.fakes import FakeLab
from support.runs import IMAGES


def test_a_resumed_run_neither_loses_nor_repeats_a_trial(ready: Bench) -> None:
    before = ready.interrupt()
    assert ready.resume() == 0
    after = ready.csv
    assert after.startswith(before)
    assert ready.column("trial") == [
        "01-a-open-c200",
        "02-b-open-c200",
        "03-a-closed-c200",
        "04-b-closed-c200",
    ]
    assert len(ready.lab.system.started) == 5  # the third trial twice
    assert ready.manifest["status"] == "complete"
    assert "RESUME=" in ready.text.getvalue()


def test_what_an_unfinished_trial_left_is_kept_aside(ready: Bench) -> None:
    ready.interrupt()
    ready.resume()
    assert (ready.run_dir / "abandoned" / "03-a-closed-c200-1" / "fake.txt").exists()


def test_a_trial_that_ended_without_its_row_is_not_run_again(ready: Bench) -> None:
    # Killed between the raw data and the row.
    lines = ready.interrupt().splitlines(keepends=True)
    (ready.run_dir / "trials.csv").write_text("".join(lines[:2]))
    ready.resume()
    assert ready.csv.startswith("".join(lines))
    assert len(ready.lab.system.started) == 5


TWO_LOADS: dict[str, Any] = {"launches": 1, "modes": ("closed",), "concurrencies": (100, 200)}


def test_a_launch_goes_on_with_its_jvms_after_a_resume(ready: Bench) -> None:
    ready.interrupt(**TWO_LOADS)
    ready.resume()
    assert ready.lab.restarts == ["a", "b"]
    # They are warm.
    assert ready.warmed == ["a", "b"]
    started = {(one["server"], one["jvm_started_ms"]) for one in ready.trials}
    assert len(started) == 2


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
        (lambda r, lab: lab.settings.update(b={"downstream_connections": 7}), "b: downstream_conn"),
        (lambda r, lab: setattr(lab, "delay_ms", 100), "the downstream's delay"),
        (lambda r, lab: r.on(commit="beef"), "commit changed"),
        (lambda r, lab: r.on(kernel=None), "the host's kernel was not recorded"),
        (
            lambda r, lab: r.on(images={**IMAGES, "x/toxiproxy:2": {"id": "2"}}),
            "image of toxiproxy",
        ),
        (
            lambda r, lab: setattr(r, "place", dataclasses.replace(r.place, file_limit=1024)),
            "open_files",
        ),
    ],
)
def test_a_run_does_not_go_on_in_another_lab(
    ready: Bench, change: Callable[[Bench, FakeLab], None], said: str
) -> None:
    before = ready.interrupt()
    change(ready, ready.lab)
    with pytest.raises(LabError, match=said):
        ready.resume()
    assert ready.csv == before


@pytest.mark.parametrize("code", [{"commit_dirty": True}, {"commit": "unknown"}])
def test_code_that_no_commit_tells_goes_on_with_the_images_it_began_with(
    ready: Bench, code: dict[str, object]
) -> None:
    ready.on(**code)
    ready.interrupt()
    assert ready.resume() == 0


@pytest.mark.parametrize("image", ["a", "loadgen"])
def test_code_that_no_commit_tells_does_not_go_on_with_another_image(
    ready: Bench, image: str
) -> None:
    ready.on(commit_dirty=True)
    ready.interrupt()
    images = {tag: {"id": "new"} if f"/{image}:" in tag else of for tag, of in IMAGES.items()}
    ready.on(commit_dirty=True, images={**images, "ghcr.io/x/toxiproxy:2": {"id": "sha256:t"}})
    with pytest.raises(LabError, match=f"the image of {image} changed"):
        ready.resume()


def test_a_complete_run_has_nothing_left(ready: Bench) -> None:
    ready.run()
    with pytest.raises(LabError, match="nothing is left"):
        ready.resume()


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ((), "it began with NOFILE=300; give it again"),
        (("NOFILE=400",), "it began with NOFILE=300; give it again"),
        (("NOFILE=300", "LAB_PROBE_RPS=1"), "it began without LAB_PROBE_RPS=1; leave it out"),
    ],
)
def test_it_goes_on_under_the_settings_of_make_that_it_began_with(
    ready: Bench, now: tuple[str, ...], said: str
) -> None:
    began = dataclasses.replace(ready.place, settings=("NOFILE=300",))
    ready.place = began
    ready.interrupt()
    assert f"make run RESUME={ready.run_dir.name} NOFILE=300 goes on" in ready.text.getvalue()
    ready.place = dataclasses.replace(began, settings=now)
    with pytest.raises(LabError, match=said):
        ready.resume()
    ready.place = began
    assert ready.resume() == 0
