"""Whole benches of a service that is not the lab's."""

import copy
import gzip
from pathlib import Path

import httpx
import pytest

from lab.app.resume import resume
from lab.errors import EngineError, LabError, LabUnreachable
from lab.judge.checks.data import warmth_unproven
from lab.judge.same_lab import LIMITS
from lab.kinds.explain import Explain
from lab.kinds.reading import with_secrets
from lab.load.engines import Schedule
from lab.load.engines.pacer import Pacer
from lab.model import NOT_STORED, OwnLever, Request, TrialPlan, Warmth
from lab.store import manifest
from lab.store.records import to_json
from lab.system.stack import Stack
from support.bench import Bench
from support.fakes import FakeEngine
from support.foreign import URL
from support.runs import rejudged

UNPROVEN = warmth_unproven.remark(server="my-service", port=9404)


@pytest.fixture
def ready(ready: Bench) -> Bench:
    ready.lab.foreign, ready.lab.scraped_jvms = {"my-service"}, {"my-service"}
    return ready


TARGETED: dict[str, object] = {
    "servers": ("my-service",),
    "routes": ("/x?a=1",),
    "modes": ("closed", "open"),
    "rate_rps": 500,
    "target": URL,
}
CLOSED = {**TARGETED, "modes": ("closed",)}


def test_a_bench_of_a_target_leaves_the_same_files(ready: Bench) -> None:
    assert ready.run(**TARGETED) == 0
    cells = "my-service /x?a=1 closed true, my-service /x?a=1 open true"
    assert ready.cells("server", "route", "mode", "valid") == cells
    assert ready.rows[0]["predicted_rps"] == ""
    assert ready.record(ready.rows[0]["trial"])["plan"]["url"] == f"{URL}/x?a=1"
    assert ready.trials[0]["jvm_started_ms"] == 1_000_000
    assert ("my-service", 8081) not in ready.lab.asked
    for name in ("report.html", "REPORT.md"):
        assert "my-service" in (ready.run_dir / name).read_text()
    # No more than one percent of what is offered is probed, nor of what the light load did.
    assert ready.lab.probe_rates == {10.0, 5.0}


def test_each_launch_is_a_fresh_container_and_nothing_is_known_of_it(ready: Bench) -> None:
    # Its exporter is not read, so nothing but the launch tells that it is another process.
    ready.lab.scraped_jvms = set()
    ready.renewed, warmed = [], list[int]()

    def warm(plan: TrialPlan, *_: object) -> Warmth:
        warmed.append(plan.launch)
        return Warmth(False, (), UNPROVEN, provable=False)

    ready.warm = warm
    changes = {**TARGETED, "concurrencies": (100, 200), "launches": 2}
    assert ready.run(**changes) == 0
    assert ready.column("launch") == ["1"] * 4 + ["2"] * 4
    assert (ready.renewed, warmed) == (["my-service"] * 2, [1, 2])


def test_its_jvm_is_recorded_by_an_agent_and_its_container_replaced(ready: Bench) -> None:
    ready.renewed = []
    assert ready.run(**CLOSED, own={"record": "cpu"}) == 0
    calls = [("my-service", "cpu"), ("my-service", "end")]
    assert [call[:2] for call in ready.lab.recordings] == calls
    assert ready.renewed == ["my-service"]
    assert ready.lab.patches == []
    assert ("my-service", 8081) not in ready.lab.asked
    assert "my-service, /x?a=1 closed 200, recorded: CPU time by" in ready.said


@pytest.mark.parametrize("health", [None, 200], ids=["no agent", "another lab's agent"])
def test_a_jvm_without_a_recorder_is_refused(ready: Bench, health: int | None) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.port != 9405 or (health and request.url.path == "/health"):
            return ready.lab.answer(request)
        if health is None:
            raise httpx.ConnectError("refused", request=request)
        return httpx.Response(403, json={"error": "this call needs the server's token"})

    ready.lab.stack = Stack("", httpx.MockTransport(answer))
    with pytest.raises(LabUnreachable, match=r"no recorder with this lab's token .* port 9405"):
        ready.run(**TARGETED, own={"record": "cpu"})
    assert not ready.run_dir.exists()


def test_an_explanation_of_it_changes_its_container_and_knows_nothing_of_the_next_one(
    ready: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing but the change tells that it is another process.
    ready.lab.scraped_jvms = set()
    rejudged(monkeypatch, lambda raw: {"bottleneck": "worker pool", "strength": "weak"})
    asked = ready.hosted(tmp_path)
    warmed: list[tuple[str, int]] = []

    def warm(plan: TrialPlan, *_: object) -> Warmth:
        warmed.append((plan.condition.text, len(asked)))
        return Warmth(False, (), UNPROVEN, provable=False)

    levers = {"worker pool": OwnLever("POOL_SIZE", 20)}
    changes = {"kind": "explain", "own": to_json(Explain(2, 1)), "levers": levers}
    ready.warm = warm
    assert ready.run(**CLOSED, **changes) == 0
    assert ready.column("arm") == ["1-named", "1-before", "1-after", "1-after", "1-before"]
    own, more = "SERVER=my-service\n", "SERVER=my-service\nENV_POOL_SIZE=40\n"
    # Each trial has a container of its own, also after one with the same settings.
    fresh = f"{own}FRESH=yes\n"
    assert asked == [fresh, more, fresh, own]
    assert ready.column("launch") == ["0", "1", "2", "3", "4"]
    conditions = ["as it is", "as it is", "POOL_SIZE=40", "POOL_SIZE=40", "as it is"]
    assert warmed == [(text, at) for at, text in enumerate(conditions)]
    assert ready.manifest["experiment"]["levers"]["worker pool"]["value"] == 20
    assert "step 1, worker pool (named, weak evidence): inconclusive; POOL_SIZE 20" in ready.said
    assert ("my-service", 8081) not in ready.lab.asked


def test_a_mix_of_requests_is_sent_and_its_service_is_asked_where_it_says(ready: Bench) -> None:
    ready.lab.engine = FakeEngine("pacer")
    mix = (Request("/x?a=1", weight=9), Request("/y", "POST", {"A": "b"}, "c"))
    mixed = {**TARGETED, "routes": ("shop",), "requests": mix, "ready": "/health"}
    assert ready.run(**mixed) == 0
    assert ready.column("route") == ["shop", "shop"]
    told = ready.record(ready.rows[0]["trial"])["plan"]
    assert told["url"] == f"{URL}/x?a=1"
    assert [one["path"] for one in told["requests"]] == ["/x?a=1", "/y"]
    assert ready.manifest["experiment"]["requests"] == told["requests"]
    assert "/health" in ready.lab.paths
    ready.lab.engine = FakeEngine("wrk2")
    with pytest.raises(EngineError, match="pacer alone sends what shop is made of"):
        ready.run(**mixed)


class Writing(FakeEngine):
    """Leaves what pacer would have been given, and what it is given here."""

    def schedule(self, plan: TrialPlan, raw: Path) -> Schedule:
        real, fake = Pacer().schedule(plan, raw), super().schedule(plan, raw)
        return copy.replace(fake, files=real.files, stdin=real.stdin)


def test_no_file_of_a_run_holds_a_secret_header(ready: Bench, tmp_path: Path) -> None:
    subjects = tmp_path / "subjects"
    subjects.mkdir()
    (subjects / "shop.toml").write_text(
        f'url = "{URL}"\nready = "/health"\n[[request]]\npath = "/y"\nmethod = "POST"\n'
        'headers = {Authorization = "Bearer 5ecret"}\nbody = "c"\n'
    )
    ready.lab.engine = Writing("pacer")
    requests = (Request("/y", "POST", {"Authorization": "Bearer 5ecret"}, "c"),)
    of_file = {"routes": ("POST /y",), "requests": requests, "ready": "/health", "subject": "shop"}
    ready.interrupt(50.0, **{**TARGETED, **of_file})
    stored = manifest.read(ready.run_dir).experiment
    assert stored.requests[0].headers == {"Authorization": NOT_STORED}
    experiment = with_secrets(ready.run_dir.name, stored, subjects)
    assert resume(ready.run_dir, experiment, ready.where, ready.stages) == 0
    given = ready.lab.system.given
    assert len(given) >= 2
    assert all("Bearer 5ecret" in text for text in given)
    files = [path for path in ready.place.results.rglob("*") if path.is_file()]
    texts = {
        path: gzip.decompress(content) if path.suffix == ".gz" else content
        for path in files
        for content in [path.read_bytes()]
    }
    assert [path for path, text in texts.items() if b"5ecret" in text] == []
    assert [path for path, text in texts.items() if NOT_STORED.encode() in text]
    assert "5ecret" not in ready.text.getvalue()


def test_a_closed_load_has_no_bound_and_a_redirect_is_a_note(ready: Bench) -> None:
    ready.lab.route_status = 302
    assert ready.run(**CLOSED) == 0
    # 200 connections did 1,000 req/s, of which the probe takes one percent.
    assert ready.lab.probe_rates == {10.0}
    said = "/x?a=1 answers 302: redirects"
    for trial in ready.trials:
        [note] = [note for note in trial["notes"] if note["code"] == "target-answered"]
        assert note["values"]["answer"].startswith(said)


@pytest.mark.parametrize(
    ("binds", "image", "said"),
    [
        ([None], "1", ""),
        ([None], "2", "images: my-service was 1 "),
        # Its code may be in a folder of the host, so no image identifies it.
        (["/app", None], "1", "images: my-service was not recorded "),
    ],
)
def test_resumed_a_container_of_another_or_an_unknown_image_is_refused(
    ready: Bench, binds: list[str | None], image: str, said: str
) -> None:
    def runs(image: str) -> None:
        service = {**dict.fromkeys(LIMITS, 0), "config": "x", "binds": binds, "image": image}
        ready.on(services={"my-service": service})

    runs("1")
    ready.interrupt(50.0, **TARGETED)
    runs(image)
    if said:
        with pytest.raises(LabError, match=said):
            ready.resume()
    else:
        assert ready.resume() == 0
        assert len(ready.rows) == 2
