"""What doctor finds right, and what wrong."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lab.app.doctor import examine
from support.fakes import FakeEngine, FakeLab


def broken(lab: FakeLab) -> None:
    lab.down.add("b")
    lab.agent_up, lab.targets_health, lab.engine.here = False, "down", False


def own_service_down(lab: FakeLab) -> None:
    lab.scraped_jvms, lab.targets_health = {"my-service"}, "down"


def other_server(lab: FakeLab) -> None:
    lab.identities["b"] = lab.identities["a"]


def not_scraped_yet(lab: FakeLab) -> None:
    lab.targets_health = "unknown"


@pytest.mark.parametrize(
    ("change", "failed", "warned"),
    [
        (lambda lab: None, [], []),
        # As right after a bench: Prometheus has just been told another interval for it.
        (not_scraped_yet, [], []),
        (other_server, ["b: a answers"], []),
        (own_service_down, ["target server a"], ["target jvm my-service:9404"]),
        (broken, ["b: http://b:8081", "agent: ", "target server a", "no load engine"], []),
    ],
)
def test_each_part_is_right_or_named(
    lab: FakeLab,
    tmp_path: Path,
    change: Callable[[FakeLab], None],
    failed: list[str],
    warned: list[str],
) -> None:
    change(lab)
    found = list(examine(lab.stack, ("a", "b"), tmp_path, 20_000, 2, [lab.engine]))
    for level, begins in (("FAIL", failed), ("warn", warned)):
        texts = [text for at, text in found if at == level]
        assert all(text.startswith(begin) for text, begin in zip(texts, begins, strict=True)), texts


@pytest.mark.parametrize(
    ("engines", "levels"),
    [
        # Not every machine has wrk2; pacer every machine should have.
        ({"wrk2": False, "pacer": True}, "ok ok"),
        ({"wrk2": True, "pacer": False}, "ok warn"),
        ({"wrk2": False}, "ok FAIL"),
    ],
)
def test_an_engine_runs_here_or_not(
    lab: FakeLab, tmp_path: Path, engines: dict[str, bool], levels: str
) -> None:
    fakes = [FakeEngine(name, here=here) for name, here in engines.items()]
    found = examine(lab.stack, ("a",), tmp_path, 20_000, 2, fakes)
    assert " ".join(level for level, text in found if "engine " in text[:15]) == levels


def test_the_limits_of_the_machine_are_judged(lab: FakeLab, tmp_path: Path) -> None:
    found = list(examine(lab.stack, ("a",), tmp_path / "gone", 4000, 1, [lab.engine]))
    assert [level for level, _ in found[-3:]] == ["warn", "warn", "FAIL"]
    assert "CONC=1500" in found[-3][1]
