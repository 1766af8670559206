"""The words of density, and whole runs on a fake lab with fake connections and a fake clock."""

import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from lab.campaign.density import density, resume
from lab.campaign.result_verbs import report_verb
from lab.campaign.tools import Place
from lab.cli import do
from lab.errors import Interrupted, LabError, WordError
from lab.experiments.plans import of_verb
from lab.experiments.reading import Here
from lab.model import Fairness
from lab.model.density import Kind, Plan, Row
from lab.model.knobs import DIRECT
from lab.report import density as report
from lab.store import manifest
from support.bench import Ready
from support.fakes import START, FakeLab

RUN = "20260131T120000Z-density"
SERVERS = ("a", "b")


def plan(**words: str) -> Plan:
    return asked(words, 20_000, 55_536)


def asked(words: dict[str, str], file_limit: int, ports: int | None) -> Plan:
    found, _ = of_verb("density", words, Here(SERVERS, file_limit, ports))
    assert isinstance(found, Plan)
    return found


def test_no_word_is_needed() -> None:
    whole = plan()
    assert (whole.servers, whole.kinds) == (SERVERS, ("idle", "slow"))
    assert (whole.asked, whole.connections, whole.why_fewer) == (8000, 8000, None)
    assert (whole.launches, whole.rows) == (3, 12)


def test_fewer_connections_than_asked_have_a_reason() -> None:
    files = plan(CONNECTIONS="50000")
    assert (files.asked, files.connections) == (50_000, 19_000)
    assert files.why_fewer == "20000 open files per process"
    ports = asked({"CONNECTIONS": "60000"}, 1_000_000, 55_536)
    assert (ports.connections, ports.why_fewer) == (55_036, "55536 source ports")
    assert asked({}, 4000, None).connections == 3000


def test_a_request_in_flight_may_hold_two_files_of_the_server() -> None:
    both = plan(KIND="in-flight", CONNECTIONS="19000")
    assert (both.connections, both.route) == (9500, "/downstream")
    assert both.why_fewer == "20000 open files per process, 2 for each request"
    one = plan(KIND="in-flight", CONNECTIONS="19000", ROUTE="/block")
    assert (one.connections, one.why_fewer, one.kinds) == (19_000, None, ("in-flight",))
    assert one.route == "/block?wait_ms=60000"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"CONNECTIONS": "many"}, "CONNECTIONS=many is not allowed; allowed: 1..1000000"),
        ({"LAUNCHES": "0"}, "LAUNCHES=0 is not allowed; allowed: 1..100"),
        ({"KIND": "busy"}, "KIND=busy is not allowed; allowed: idle, slow, in-flight, both"),
        ({"SERVER": "c"}, "SERVER=c is not a server of the lab; allowed: a, b"),
        ({"SERVER": "a,a"}, "names the same twice"),
        ({"NAME": "../x"}, "NAME=../x is not allowed"),
        (
            {"CONC": "5"},
            "unknown word CONC; allowed: SERVER, ROUTE, LAUNCHES, NAME, CONNECTIONS, KIND",
        ),
        ({"ROUTE": "/block"}, "density: ROUTE is only for KIND=in-flight"),
        ({"KIND": "in-flight", "ROUTE": "/"}, "ROUTE=/ is not allowed; allowed: /downstream, /blo"),
    ],
)
def test_a_wrong_word_gets_one_line(words: dict[str, str], says: str) -> None:
    with pytest.raises(WordError) as refused:
        plan(**words)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


class FakeHeld(AbstractContextManager["FakeHeld"]):
    """Opens what it is asked for, at most `most`; the lab sees every one of them."""

    def __init__(self, fakes: "Fakes", server: str) -> None:
        self._fakes = fakes
        self._server = server
        self.problem: str | None = None
        self.lost = "the server closed it"
        self.open = 0

    def add(self, count: int, deadline: float, monotonic: Callable[[], float]) -> None:
        self.open = min(self.open + count, self._fakes.most)
        self._fakes.steps.append(count)
        if self.open == self._fakes.most:
            self.problem = "Too many open files"
        self._fakes.held[self._server] = self.open

    def notice_closed(self) -> None:
        self.open -= self._fakes.closed_by_server

    def __exit__(self, *_: object) -> None:
        self._fakes.held[self._server] = 0


class Fakes:
    """Connections of 1,000 bytes of heap and 3,000 resident on server a, twice that on b."""

    def __init__(self, lab: FakeLab) -> None:
        self.held = dict.fromkeys(SERVERS, 0)
        self.steps: list[int] = []
        self.asked_for: set[tuple[Kind, str]] = set()
        self.most = 1_000_000
        self.closed_by_server = 0
        cost = {"a": 1, "b": 2}
        lab.heap_bytes = lambda s: 10_000_000 + 1000 * cost[s] * self.held[s]
        lab.class_bytes = lambda s: {
            "[B": 5_000_000 + 700 * cost[s] * self.held[s],
            "[Ljava.lang.Object;": 16 * self.held[s],
            "lab.Handler$$Lambda/0x00007f2a1c": 100 * self.held[s],
            "lab.Handler$$Lambda/0x00007f2b00": 150 * self.held[s],
            "lab.Small": 3 * self.held[s],
        }
        lab.resident_bytes = lambda s: 100_000_000 + 3000 * cost[s] * self.held[s]
        lab.open_files = lambda s: 40 + self.held[s]
        lab.proxy_held = lambda: 2 * sum(self.held.values())

    def connect(
        self, host: str, port: int, kind: Kind, route: str, check: Callable[[], None]
    ) -> FakeHeld:
        assert port == 8080
        check()
        self.asked_for.add((kind, route))
        return FakeHeld(self, host)


@dataclasses.dataclass
class Run(Ready):
    """A density run ready to start."""

    name = RUN
    table = "density.csv"

    def __post_init__(self) -> None:
        self.fakes = Fakes(self.lab)

    def run(self, **words: str) -> int:
        whole = plan(**{"LAUNCHES": "1", **words})
        return density(whole, self.where, self.fakes.connect)

    def resume(self) -> int:
        return resume(self.run_dir, self.where, self.fakes.connect)

    def rebuild(self) -> int:
        return report_verb({"RUN": RUN}, self.place.results, self.console)

    def interrupt(self, at_s: float = 3.0, **words: str) -> None:
        """A run that is stopped after so long."""
        self.lab.system.interrupt_at = at_s
        with pytest.raises(Interrupted):
            self.run(**words)
        self.lab.system.interrupt_at = None


@pytest.fixture
def ready(home: Path, lab: FakeLab) -> Run:
    return Run(Place(home / "results", home / "host.json", 20_000, 2, ports=55_536), lab)


def test_every_row_is_a_fresh_jvm_and_servers_alternate(ready: Run) -> None:
    assert ready.run(LAUNCHES="2") == 0
    assert [(row["launch"], row["kind"], row["server"]) for row in ready.rows] == [
        (launch, kind, server)
        for launch in ("1", "2")
        for kind in ("idle", "slow")
        for server in SERVERS
    ]
    # One more of each tells what they have.
    assert ready.lab.restarts == ["a", "b"] * 5
    assert {row["valid"] for row in ready.rows} == {"true"}


def test_memory_per_connection_is_the_difference_by_their_number(ready: Run) -> None:
    ready.run(CONNECTIONS="2000")
    row = ready.rows[1]
    assert tuple(row) == Row.columns()
    assert (row["asked"], row["opened"], row["why_fewer"]) == ("2000", "2000", "")
    assert (row["heap_before_bytes"], row["heap_after_bytes"]) == ("10000000", "14000000")
    assert (row["heap_per_connection_bytes"], row["resident_per_connection_bytes"]) == (
        "2000.0",
        "6000.0",
    )


def test_the_heap_of_a_connection_is_told_by_class(ready: Run) -> None:
    ready.run(CONNECTIONS="2000", LAUNCHES="6", KIND="idle")
    assert {row["made_of"] for row in ready.rows if row["server"] == "a"} == {
        "byte[] 700.0; lab.Handler$$Lambda 250.0; java.lang.Object[] 16.0"
    }
    text = (ready.run_dir / "REPORT.md").read_text()
    # 1,000 bytes: an array of references has less than 2 % of them.
    assert (
        "| a | idle | 2000 | byte[] | 700 [700 700] |\n"
        "| a | idle | 2000 | lab.Handler$$Lambda | 250 [250 250] |\n"
        "| a | idle | 2000 | other classes | 50 [50 50] |\n"
        "| b | idle | 2000 | byte[] | 1400 [1400 1400] |\n"
    ) in text
    said = "made of, a idle: byte[] 700 [700 700], lab.Handler$$Lambda 250 [250 250] bytes each"
    assert said in ready.text.getvalue()


def test_a_run_from_before_the_classes_were_told_is_read(ready: Run) -> None:
    ready.run(LAUNCHES="1", KIND="idle")
    path = ready.run_dir / "density.csv"
    rows = [line.split(",") for line in path.read_text().splitlines()]
    at = rows[0].index("made_of")
    path.write_text("".join(",".join(row[:at] + row[at + 1 :]) + "\n" for row in rows))
    ready.rebuild()
    text = (ready.run_dir / "REPORT.md").read_text()
    assert "| a | idle | 8000 | 1000 | 3000 | 1 |" in text
    assert "made of" not in text


def test_an_answer_about_classes_that_is_none_costs_the_row(ready: Run) -> None:
    ready.lab.class_bytes = lambda server: {"[B": "many"}  # type: ignore[dict-item]
    assert ready.run(KIND="idle", SERVER="a") == 1
    assert "its answer to /classes is wrong" in ready.rows[0]["invalid_reasons"]


def test_requests_in_flight_are_held_and_the_first_step_is_what_the_others_are_compared_with(
    ready: Run,
) -> None:
    lab, fakes = ready.lab, ready.fakes
    lab.settings["a"] = {"downstream_timeout_ms": 10_000}
    lab.proxy_files = 900
    lab.open_files = lambda server: 40 + 2 * fakes.held[server]
    lab.heap_bytes = lambda server: 10_000_000 + 1000 * max(500, fakes.held[server])
    assert ready.run(KIND="in-flight", CONNECTIONS="9000", SERVER="a") == 0
    row = ready.rows[0]
    assert (row["kind"], row["opened"]) == ("in-flight", "9000")
    assert (row["valid"], row["invalid_reasons"]) == ("true", "")
    # The first 900 are there at both readings, and so is what only the first ones take.
    assert row["heap_per_connection_bytes"] == "1000.0"
    assert fakes.asked_for == {("in-flight", "/downstream")}
    assert fakes.steps == [900] * 10
    # Neither given up nor answered meanwhile, with a thread for each; then as it was.
    assert lab.patches == [
        ("a", {"pool_size": 9000, "downstream_timeout_ms": 600_000}),
        ("a", {"pool_size": 200, "downstream_timeout_ms": 10_000}),
    ]
    # Down and up, so that no connection of another server takes a file that these will need.
    assert [call for _, call in lab.toxic_calls] == [
        "POST /proxies/downstream",
        "POST /proxies/downstream",
        "POST /proxies/downstream/toxics",
        "DELETE /proxies/downstream/toxics/in-flight",
    ]
    assert lab.proxy_files == 12


def test_requests_that_wait_in_a_queue_are_not_in_flight(ready: Run) -> None:
    fakes = ready.fakes
    ready.lab.open_files = lambda server: 40 + fakes.held[server] + min(200, fakes.held[server])
    ready.run(KIND="in-flight", CONNECTIONS="1000", SERVER="a")
    said = "the server and Toxiproxy never had 2000 more files open"
    assert ready.rows[0]["invalid_reasons"] == said


def test_calls_that_toxiproxy_has_not_accepted_are_not_in_flight(ready: Run) -> None:
    ready.lab.open_files = lambda server: 40 + 2 * ready.fakes.held[server]
    ready.lab.proxy_held = lambda: ready.fakes.held["a"]
    ready.run(KIND="in-flight", CONNECTIONS="1000", SERVER="a")
    said = "the server and Toxiproxy never had 2000 more files open"
    assert said in ready.rows[0]["invalid_reasons"]


def test_memory_that_was_read_too_early_is_told(ready: Run) -> None:
    held = ready.fakes.held
    ready.lab.open_files = lambda server: 40 + (2 * held[server] if held[server] > 500 else 0)
    ready.run(KIND="in-flight", CONNECTIONS="1000", SERVER="a")
    said = "memory was read before the first step was there"
    assert ready.rows[0]["invalid_reasons"] == said


def test_requests_in_flight_on_block_need_no_downstream(ready: Run) -> None:
    ready.run(KIND="in-flight", CONNECTIONS="1000", SERVER="a", ROUTE="/block")
    assert ready.rows[0]["valid"] == "true"
    assert ready.fakes.asked_for == {("in-flight", "/block?wait_ms=60000")}
    assert ready.lab.toxic_calls == []
    assert "1000, in-flight on /block?wait_ms=60000" in (ready.run_dir / "REPORT.md").read_text()


def test_calls_that_no_toxic_can_hold_are_refused_before_anything_is_changed(ready: Run) -> None:
    ready.lab.settings = {server: {"downstream_url": DIRECT} for server in SERVERS}
    with pytest.raises(LabError) as refused:
        ready.run(KIND="in-flight", CONNECTIONS="1000")
    assert str(refused.value) == (
        "density: a calls the downstream without Toxiproxy (SERVER_DOWNSTREAM_URL), whose toxic "
        "holds its calls in flight; ROUTE=/block needs neither"
    )
    assert not ready.run_dir.exists()
    assert ready.lab.restarts == []
    ready.run(KIND="in-flight", CONNECTIONS="1000", ROUTE="/block")
    assert set(ready.column("valid")) == {"true"}


def test_the_table_and_the_manifest_tell_it_all(ready: Run) -> None:
    ready.run(LAUNCHES="6", KIND="idle", SERVER="a", NAME="density")
    text = ready.text.getvalue()
    assert "1000 [1000 1000]" in text
    assert "3000 [3000 3000]" in text
    assert "equal for all: " in text
    assert "[1/6] a idle launch 1: 8000 connections, heap 1000, resident 3000 bytes each" in text
    manifest = ready.manifest
    assert manifest["status"] == "complete"
    assert manifest["limits"] == {"open_files": 20_000, "source_ports": 55_536}
    experiment = manifest["experiment"]
    assert (experiment["asked"], experiment["launches"]) == (8000, 6)
    assert (ready.place.results / "latest").resolve().name == RUN


def test_fewer_than_six_launches_show_their_range_and_no_interval(ready: Run) -> None:
    ready.run(LAUNCHES="3", KIND="idle", SERVER="a")
    assert "1000 (1000 1000)" in ready.text.getvalue()


def test_fewer_than_asked_are_never_silent(ready: Run) -> None:
    ready.run(CONNECTIONS="50000", KIND="idle", SERVER="a")
    assert (ready.rows[0]["asked"], ready.rows[0]["opened"]) == ("50000", "19000")
    said = "19000 of 50000 connections: 20000 open files per process"
    assert said in ready.text.getvalue()
    assert "19000 of the 50000 connections asked for" in ready.text.getvalue()


def test_what_stops_the_opening_is_told(ready: Run) -> None:
    ready.fakes.most = 700
    ready.run(KIND="idle", SERVER="a")
    row = ready.rows[0]
    assert (row["opened"], row["why_fewer"], row["valid"]) == ("700", "Too many open files", "true")
    assert "700 of 8000 connections: Too many open files" in ready.text.getvalue()


def test_no_connection_at_all_is_no_figure(ready: Run) -> None:
    ready.fakes.most = 0
    assert ready.run(KIND="idle", SERVER="a") == 1
    row = ready.rows[0]
    assert (row["heap_per_connection_bytes"], row["valid"]) == ("", "false")
    assert row["invalid_reasons"] == "no connection could be opened"


def test_connections_that_the_server_closed_make_the_row_invalid(ready: Run) -> None:
    ready.fakes.closed_by_server = 5
    ready.run(KIND="idle", SERVER="a")
    assert (
        ready.rows[0]["invalid_reasons"] == "5 of 8000 connections were lost: the server closed it"
    )


def test_connections_that_never_reach_the_server_make_the_row_invalid(ready: Run) -> None:
    ready.lab.open_files = lambda server: 40
    ready.run(KIND="slow", SERVER="a")
    reason = "the server never had 8000 more files open"
    assert ready.rows[0]["invalid_reasons"] == reason


def test_a_jvm_that_restarts_by_itself_makes_the_row_invalid(ready: Run) -> None:
    def crash(server: str) -> int:
        ready.lab.new_jvm(server)
        return 10_000_000

    ready.lab.heap_bytes = crash
    ready.run(KIND="idle", SERVER="a")
    assert ready.rows[0]["invalid_reasons"] == "the JVM restarted during the launch"


def test_a_jvm_that_does_not_come_back_costs_its_own_rows(ready: Run) -> None:
    ready.lab.never_back = {"a"}
    assert ready.run(KIND="idle") == 1
    # It was waited for before the run began.
    (ready.name,) = {one.name for one in ready.place.results.glob("*-density")}
    said = {row["server"]: (row["valid"], row["invalid_reasons"]) for row in ready.rows}
    problem = "the server did not come back: a: its JVM did not end when told to"
    assert said["a"] == ("false", f"{problem} (120 s after its restart)")
    assert said["b"] == ("true", "")
    assert ready.manifest["status"] == "complete"


def test_what_is_told_is_what_every_launch_has(ready: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ready.lab.settings = {"a": {"backlog": 50}, "b": {"backlog": 4096}}
    new_jvm = ready.lab.new_jvm

    def restarted(server: str) -> None:
        new_jvm(server)
        ready.lab.settings[server] = {"backlog": 4096}

    monkeypatch.setattr(ready.lab, "new_jvm", restarted)
    ready.run(KIND="idle")
    said = "warning: a: backlog was 50; every launch is a fresh JVM, with 4096"
    assert said in " ".join(ready.text.getvalue().split())
    assert {row["invalid_reasons"] for row in ready.rows} == {""}
    assert ready.manifest["servers"]["a"]["settings"]["backlog"] == 4096


def test_unequal_limits_make_every_row_invalid(ready: Run) -> None:
    ready.lab.settings = {"a": {"backlog": 4096}, "b": {"backlog": 50}}
    ready.run(KIND="idle")
    reasons = {row["invalid_reasons"] for row in ready.rows}
    assert reasons == {"unequal limits: backlog a=4096 b=50"}


def test_an_interrupt_keeps_what_was_measured(ready: Run) -> None:
    ready.interrupt()
    assert 0 < len(ready.rows) < 4
    assert ready.manifest["status"] == "interrupted"
    assert set(ready.fakes.held.values()) == {0}


def test_an_interrupt_tells_what_could_not_be_put_back(ready: Run) -> None:
    ready.lab.open_files = lambda server: 40 + 2 * ready.fakes.held[server]
    # Toxiproxy takes the cut and the toxic, and hangs when that is to be removed.
    ready.lab.stuck_from = 3
    ready.interrupt(1.0, KIND="in-flight", CONNECTIONS="1000", SERVER="a")
    assert "warning: the lab could not be put back as it was: toxiproxy: http:" in ready.said
    assert ready.manifest["status"] == "interrupted"


def test_a_resumed_run_neither_loses_nor_repeats_a_launch(ready: Run) -> None:
    ready.interrupt()
    before = ready.rows
    assert ready.resume() == 0
    assert ready.rows[: len(before)] == before
    launches = [(row["launch"], row["kind"], row["server"]) for row in ready.rows]
    assert launches == [("1", kind, server) for kind in ("idle", "slow") for server in ("a", "b")]
    assert ready.manifest["status"] == "complete"
    with pytest.raises(LabError, match="nothing is left"):
        ready.resume()


def test_a_row_that_a_power_cut_left_torn_is_dropped_and_measured_again(ready: Run) -> None:
    ready.interrupt()
    whole, path = ready.csv, ready.run_dir / "density.csv"
    path.write_text(whole[:-20])
    report_verb({"RUN": RUN}, ready.place.results, ready.console)
    assert "the last row of density.csv is torn, and left out" in ready.said
    assert ready.resume() == 0
    assert "the last row of density.csv was torn: it is dropped" in ready.said
    assert len(ready.rows) == 4
    assert ready.column("valid") == ["true"] * 4


def test_a_run_does_not_go_on_in_another_lab(ready: Run) -> None:
    ready.interrupt()
    ready.lab.settings["b"] = {"backlog": 7}
    with pytest.raises(LabError, match="b: backlog changed since it began"):
        ready.resume()


def test_a_report_has_what_was_asked_and_what_came_out(ready: Run) -> None:
    ready.run(LAUNCHES="6", KIND="idle", CONNECTIONS="50000", SERVER="a,b")
    text = (ready.run_dir / "REPORT.md").read_text()
    assert text.startswith(f"# density: {RUN}\n")
    assert "| a | idle | 19000 | 1000 [1000 1000] | 3000 [3000 3000] | 6 |" in text
    assert "12 launches, 12 of them valid, from 2026-01-31T12:00:0" in text
    assert "### Equal for all\n\n| setting | value |\n" in text
    assert "- a idle launch 1: 19000 of 50000 connections: 20000 open files per process" in text
    assert "make density LAUNCHES=6 KIND=idle CONNECTIONS=50000 SERVER=a,b\n" in text
    assert "REPORT.md" in ready.text.getvalue()


def test_a_report_has_question_and_hypothesis_of_its_file() -> None:
    file = dataclasses.replace(
        asked({}, 20_000, None),
        question="How much?\n",
        hypothesis="Little.",
        words=("EXP=d",),
    )
    whole = manifest.Manifest(
        run="r", status="complete", started_at=START, ended_at=START, experiment=file,
        versions={}, host={}, limits={}, servers={}, fairness=Fairness({}, {}, {}),
    )  # fmt: skip
    text = report.text(whole, ())
    assert "## Question\n\nHow much?\n\n### Hypothesis\n\nLittle.\n" in text
    assert "\nmake run EXP=d\n" in text


def test_a_report_is_made_again_byte_for_byte(ready: Run) -> None:
    ready.fakes.most = 333
    ready.run(LAUNCHES="2")
    path = ready.run_dir / "REPORT.md"
    before = path.read_bytes()
    assert ready.rebuild() == 0
    assert "unchanged, byte for byte: REPORT.md" in ready.text.getvalue()
    path.unlink()
    ready.rebuild()
    assert path.read_bytes() == before
    assert "rebuilt: REPORT.md" in ready.text.getvalue()
    path.write_text("something else\n")
    ready.rebuild()
    assert path.read_bytes() == before
    assert "is kept as REPORT.md.1.old" in ready.text.getvalue()


def test_a_report_says_what_is_invalid_and_that_the_run_did_not_end(ready: Run) -> None:
    ready.fakes.closed_by_server = 5
    ready.interrupt()
    text = (ready.run_dir / "REPORT.md").read_text()
    assert "> **The run is interrupted, not complete: " in text
    assert "- a idle launch 1: 5 of 8000 connections were lost: the server closed it" in text
    ready.rebuild()
    assert "the run is interrupted, not complete" in ready.text.getvalue()


def test_report_is_the_same_verb_for_density(
    ready: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ready.run()
    assert do(["report", f"RUN={RUN}"], {"LAB_HOME": str(tmp_path)}) == 0
    assert f"results/{RUN}: 4 launches, 4 of them valid" in capsys.readouterr().out
    assert do(["report"], {"LAB_HOME": str(tmp_path)}) == 0
