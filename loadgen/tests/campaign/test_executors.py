import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from rich.console import Console

from lab.campaign.executors import left_out, parse, read_line, run
from lab.campaign.tools import Place
from lab.errors import Interrupted, LabError, LabUnreachable, WordError
from lab.model.executors import Asked
from lab.model.executors import ExecutorsPlan as Plan
from lab.system.executors import Launcher
from support.system import FakeSystem

MIB = 2**20
# What the program printed, JVM flags shortened.
LINE = (
    '{"start":"cold","purpose":"memory","executor":"fixed-pool","tasks":10000,"sleep_ms":100,'
    '"pool_size":200,"rounds_before":0,"bound_ms":5000,"submitted_us":9000,"first_start_us":400,'
    '"last_start_us":4928000,"first_wake_us":100600,"last_wake_us":5001000,"elapsed_us":5030123,"heap_before_bytes":2097152,"heap_peak_bytes":12582912,'
    '"heap_after_bytes":12582912,"allocated_bytes":1048576,"gc_count":0,'
    '"resident_before_bytes":52428800,"resident_peak_bytes":68157440,'
    '"resident_after_bytes":67108864,"platform_threads_before":7,"platform_threads_peak":207,'
    '"cpus":2,"max_heap_bytes":536870912,"jdk":"25+36-LTS",'
    '"gc":["G1 Young Generation","G1 Old Generation"],"jvm_flags":["--enable-preview","-Xmx512m"]}'
)


def line(**changes: object) -> str:
    return json.dumps({**json.loads(LINE), **changes})


class FakeLauncher:
    """Answers as the launcher; elapsed times grow by 1 ms per JVM over the bound."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.trained: list[str] = []
        self.unhealthy = 0
        self.instead: dict[int, Callable[[], httpx.Response]] = {}

    def answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/health":
            if self.unhealthy:
                self.unhealthy -= 1
                raise httpx.ConnectError("refused", request=request)
            return httpx.Response(200)
        assert request.method == "POST"
        _, _, start, purpose, executor, tasks, sleep_ms, pool_size, rounds = request.url.path.split(
            "/"
        )
        if start == "train":
            self.trained.append(f"{executor} {purpose}")
            return httpx.Response(200, text=line())
        self.asked.append(request.url.path)
        if len(self.asked) in self.instead:
            return self.instead[len(self.asked)]()
        plan = Plan(1, int(tasks), int(sleep_ms), int(pool_size))
        bound_ms = plan.bound_ms(executor)
        flags = ["--enable-preview", "-Xmx512m"]
        flags += ["-XX:+AlwaysPreTouch"] if purpose == "time" else []
        flags += ["-XX:AOTCache=a", "-XX:AOTMode=on"] if start == "aot" else []
        elapsed_us = 1000 * (bound_ms + len(self.asked))
        text = line(
            start=start,
            purpose=purpose,
            executor=executor,
            tasks=plan.tasks,
            sleep_ms=plan.sleep_ms,
            pool_size=plan.pool_size,
            rounds_before=int(rounds),
            bound_ms=bound_ms,
            last_start_us=elapsed_us - plan.sleep_ms * 1000 - 300,
            last_wake_us=elapsed_us - 200,
            elapsed_us=elapsed_us,
            jvm_flags=flags,
        )
        return httpx.Response(200, text=text + "\n")


@pytest.fixture
def fake() -> FakeLauncher:
    return FakeLauncher()


class Ran:
    """A run into a folder, with what it printed."""

    def __init__(self, plan: Plan, fake: FakeLauncher, tmp_path: Path, width: int = 120) -> None:
        self.failure: LabError | None = None
        text = io.StringIO()
        launcher = Launcher("http://executors:8080", httpx.MockTransport(fake.answer))
        console = Console(file=text, width=width)
        try:
            place = Place(tmp_path, tmp_path / "host.json", 0, 0)
            run(plan, place, launcher, FakeSystem(), console)
        except LabError as failure:
            self.failure = failure
        self.printed = text.getvalue()
        self.folder = tmp_path / "20260131T120000Z-executors"

    @property
    def rows(self) -> list[dict[str, str]]:
        with (self.folder / "executors.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    @property
    def status(self) -> str:
        return str(json.loads((self.folder / "manifest.json").read_text())["status"])


def test_defaults_are_the_published_experiment() -> None:
    plan = parse({})
    assert plan == Plan(launches=6, tasks=10_000, sleep_ms=100, pool_size=200, warmup=20)
    assert plan.bound_ms("fixed-pool") == 5000
    assert plan.bound_ms("virtual-threads") == 100


def test_every_word_is_taken() -> None:
    plan = parse({"LAUNCHES": "1", "TASKS": "1001", "SLEEP": "2s", "POOL": "10", "WARMUP": "3"})
    assert plan == Plan(1, 1001, 2000, 10, 3)
    assert plan.bound_ms("fixed-pool") == 202_000


def test_rounds_before_a_warm_one_take_5_s_at_most_but_there_is_one() -> None:
    plan = parse({})
    assert plan.rounds(Asked("virtual-threads", "warm", "time")) == 20
    assert plan.rounds(Asked("fixed-pool", "warm", "time")) == 1
    assert parse({"POOL": "5000"}).rounds(Asked("fixed-pool", "warm", "memory")) == 20
    assert parse({"WARMUP": "1000"}).rounds(Asked("virtual-threads", "warm", "time")) == 50
    assert plan.rounds(Asked("virtual-threads", "aot", "time")) == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"LAUNCHES": "x"}, "LAUNCHES=x is not allowed; allowed: 1..1000"),
        ({"LAUNCHES": "0"}, "LAUNCHES=0"),
        ({"LAUNCHES": "1.5"}, "LAUNCHES=1.5"),
        ({"TASKS": ""}, "TASKS= is not allowed; allowed: 1..1000000"),
        ({"TASKS": "１"}, "TASKS=１"),
        ({"POOL": "20001"}, "allowed: 1..20000"),
        ({"SLEEP": "100"}, "SLEEP=100 is not allowed; allowed: 1ms..60s, as 100ms or 2s"),
        ({"SLEEP": "0ms"}, "SLEEP=0ms"),
        ({"SLEEP": "61s"}, "SLEEP=61s"),
        ({"WARMUP": "0"}, "WARMUP=0 is not allowed; allowed: 1..1000"),
        ({"CONC": "5"}, "unknown word CONC; allowed: LAUNCHES, TASKS, SLEEP, POOL, WARMUP"),
    ],
)
def test_wrong_words_are_one_line(words: dict[str, str], says: str) -> None:
    with pytest.raises(WordError) as refused:
        parse(words)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_executors_and_starts_take_turns_and_every_jvm_has_a_row(
    fake: FakeLauncher, tmp_path: Path
) -> None:
    ran = Ran(Plan(launches=2), fake, tmp_path)
    assert ran.failure is None
    assert fake.trained == ["fixed-pool memory", "virtual-threads memory"]
    assert fake.asked == 2 * [
        f"/measure/{start}/{purpose}/{executor}/10000/100/200/{rounds}"
        for purpose in ("time", "memory")
        for start, executor, rounds in (
            ("cold", "fixed-pool", 0),
            ("cold", "virtual-threads", 0),
            ("aot", "fixed-pool", 0),
            ("aot", "virtual-threads", 0),
            ("warm", "fixed-pool", 1),
            ("warm", "virtual-threads", 20),
        )
    ]
    assert ran.status == "complete"
    assert [row["launch"] for row in ran.rows] == [str(n) for n in range(1, 25)]
    assert ran.rows[1]["executor"] == "virtual-threads"
    assert (ran.rows[4]["start"], ran.rows[4]["purpose"]) == ("warm", "time")
    assert ran.rows[1]["elapsed_ms"] == "102.0"
    assert ran.rows[1]["heap_delta_bytes"] == str(10 * MIB)
    assert ran.rows[1]["resident_delta_bytes"] == str(15 * MIB)
    assert ran.rows[7]["jvm_flags"] == "'--enable-preview -Xmx512m"
    raw = (ran.folder / "raw" / "launches.jsonl").read_text().splitlines()
    assert [json.loads(one)["elapsed_us"] for one in raw[:2]] == [5_001_000, 102_000]


def test_a_pool_that_is_too_slow_is_left_out_and_said_to_be(
    fake: FakeLauncher, tmp_path: Path
) -> None:
    ran = Ran(parse({"LAUNCHES": "1", "TASKS": "1000000"}), fake, tmp_path)
    assert ran.failure is None
    assert fake.trained == ["virtual-threads memory"]
    assert {row["executor"] for row in ran.rows} == {"virtual-threads"}
    assert len(ran.rows) == 6
    said = (
        "fixed-pool is left out: its 200 platform threads sleep 500 s in a round, and a round may "
        "take 60 s; POOL=1667 is enough"
    )
    # Before the first JVM, and below the tables that lack it.
    assert " ".join(ran.printed.split()).count(said) == 2


def test_how_many_threads_a_pool_that_is_too_slow_would_need() -> None:
    assert left_out(parse({"TASKS": "1000000", "POOL": "1667"})) is None
    assert left_out(parse({"TASKS": "100000"})) is None
    said = left_out(parse({"TASKS": "1000000", "SLEEP": "10s", "POOL": "20000"}))
    assert said is not None
    assert "sleep 500 s in a round" in said
    assert said.endswith("not even POOL=20000 is enough")


def test_time_and_memory_are_of_jvms_of_their_own(fake: FakeLauncher, tmp_path: Path) -> None:
    # For time the cold JVMs of virtual threads take 102, 114 … 162 ms; for memory 108, 120 … 168.
    printed = Ran(Plan(launches=6), fake, tmp_path).printed
    lines = [
        " ".join(one.split())
        for one in printed.splitlines()
        if one.startswith("virtual-threads cold")
    ]
    assert lines[0] == (
        "virtual-threads cold 100 132.0 [102.0–162.0] 1.32 9.0 0.4 31.7 100.6 131.8"
    )
    assert lines[1] == "virtual-threads cold 10.0 [10.0–10.0] 15.0 [15.0–15.0] 207 1.0 [1.0–1.0]"
    assert "In brackets from 6: 96.9 % interval of the median" in printed
    assert "1 (fixed-pool) and 20 (virtual-threads) rounds ran before" in " ".join(printed.split())
    assert "upper limit" not in printed


def test_collections_meanwhile_are_told(fake: FakeLauncher, tmp_path: Path) -> None:
    fake.instead[7] = lambda: httpx.Response(200, text=line(gc_count=3))
    printed = Ran(Plan(launches=1), fake, tmp_path).printed
    assert "The collector ran while the tasks did (fixed-pool cold)" in printed


def test_few_launches_have_no_interval_and_say_so(fake: FakeLauncher, tmp_path: Path) -> None:
    printed = Ran(Plan(launches=5), fake, tmp_path).printed
    assert "–5" not in printed
    assert "No interval from 5" in printed


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_fits(fake: FakeLauncher, tmp_path: Path, width: int) -> None:
    printed = Ran(Plan(launches=6), fake, tmp_path, width).printed
    assert max(map(len, printed.splitlines())) <= width
    assert "…" not in printed


def test_interrupted_keeps_what_was_measured(fake: FakeLauncher, tmp_path: Path) -> None:
    def interrupt() -> httpx.Response:
        raise Interrupted("stopped by SIGINT")

    fake.instead[4] = interrupt
    ran = Ran(Plan(launches=6), fake, tmp_path)
    assert isinstance(ran.failure, Interrupted)
    assert ran.status == "interrupted"
    assert [row["executor"] for row in ran.rows] == ["fixed-pool", "virtual-threads", "fixed-pool"]
    assert "No interval from 1" in ran.printed


def test_a_jvm_that_fails_ends_the_run_in_its_own_words(fake: FakeLauncher, tmp_path: Path) -> None:
    fake.instead[1] = lambda: httpx.Response(500, text="the JVM ended with status 1: no memory\n")
    ran = Ran(Plan(launches=1), fake, tmp_path)
    assert str(ran.failure) == "fixed-pool, cold: the JVM ended with status 1: no memory"
    assert ran.status == "failed"
    assert not (ran.folder / "executors.csv").exists()


def test_waits_for_the_launcher_until_a_deadline(fake: FakeLauncher, tmp_path: Path) -> None:
    fake.unhealthy = 20
    assert Ran(Plan(launches=1), fake, tmp_path).failure is None
    fake.unhealthy = 10_000
    ran = Ran(Plan(launches=1), fake, tmp_path)
    assert isinstance(ran.failure, LabUnreachable)
    assert "make executors" in str(ran.failure)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"elapsed_us": 4_999_999}, "less than the bound"),
        ({"executor": "pool"}, "executor pool"),
        ({"start": "hot"}, "start hot"),
        ({"first_wake_us": 100_399}, "an order that cannot be"),
        ({"last_wake_us": 5_030_124}, "an order that cannot be"),
        ({"start": "aot"}, "not started aot"),
        ({"start": "warm"}, "not started warm"),
        ({"purpose": "time"}, r"without -XX:\+AlwaysPreTouch"),
        ({"resident_before_bytes": 0}, "without memory"),
        ({"gc_count": None}, r"Expected `int`, got `null` - at `\$\.gc_count`"),
        ({"colour": 1}, "no field colour"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, object], says: str) -> None:
    with pytest.raises(LabError, match=says):
        read_line(line(**changes), [])


@pytest.mark.parametrize("text", ["", "{", "[]", '{"executor":"fixed-pool"}'])
def test_half_a_line_is_refused(text: str) -> None:
    with pytest.raises(LabError, match="a JVM printed an impossible result"):
        read_line(text, [])


@pytest.mark.parametrize("changes", [{"jvm_flags": []}, {"jdk": "26"}, {"cpus": 4}])
def test_other_conditions_than_the_first_are_refused(changes: dict[str, object]) -> None:
    first = read_line(LINE, [])
    assert read_line(LINE, [first]) == first
    own = [*first.jvm_flags, "-XX:+AlwaysPreTouch", "-XX:AOTCache=a", "-XX:AOTMode=on"]
    assert read_line(line(start="aot", purpose="time", jvm_flags=own), [first]).start == "aot"
    with pytest.raises(LabError, match="conditions differ"):
        read_line(line(**changes), [first])
