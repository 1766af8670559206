"""report.html: complete, self-contained, safe with any text, the same every time."""

import base64
import gzip
import hashlib
import itertools
import json
import re
from dataclasses import asdict, replace
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lab.campaign.derive import derive
from lab.experiments.cases import Case
from lab.experiments.planted import Planted
from lab.judge.checks import judge
from lab.judge.grouping import loads
from lab.judge.resources import RESOURCES
from lab.judge.trial import Trial
from lab.load.measure import measure
from lab.model import (
    NONE,
    STRONG,
    TO_CALLED,
    TO_SERVER,
    Evidence,
    Excess,
    Fairness,
    Finding,
    Measurement,
    Missing,
    Row,
    Standing,
    Verdict,
    Way,
)
from lab.report import markdown
from lab.report.page.by_load import by_load
from lab.report.page.figure import Figure
from lab.report.page.html import html
from lab.report.page.lane_styles import LaneStyles
from lab.report.page.observed import Line, Observed, Panel, drawn
from lab.report.page.script import bundled, scripts, vega
from lab.report.page.trials import Shown, trials
from lab.report.spent import milliseconds
from lab.report.words import Content
from lab.store import manifest
from lab.store.records import to_json
from support.drawn import Drawing, answered
from support.drawn_delay import SPREAD
from support.fakes import FakeEngine, judged_row
from support.runs import EXPERIMENT, plans, tell, write_manifest, write_raw

VOID = {"meta", "link", "br", "img"}
FIRST = "raw/01-a-closed"
WITH_A_LINE = Observed(2.0, 1.0, (Panel("p95", "s", "", (Line("a", ((0.0, 1.0), (1.0, 2.0))),)),))


class Page(HTMLParser):
    """Elements in order, with their attributes; refuses what is not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag in tags]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def made(run_dir: Path) -> str:
    derive(run_dir, [Drawing()])
    return (run_dir / "report.html").read_text(encoding="utf-8")


def content(run_dir: Path, rows: tuple[Row, ...], **more: Any) -> Content:
    """What a page says of a run with these rows."""
    known = {"comparisons": (), "findings": (), "notes": (), "unfinished": (), "verdicts": ()}
    known |= {"manifest": manifest.read(run_dir), "experiment": EXPERIMENT, "rows": rows}
    return Content(**{**known, "loads": loads(rows), **more})


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A run of one launch."""
    return write_raw(write_manifest(tmp_path), plans(1))


@pytest.fixture
def record(run_dir: Path) -> Measurement:
    """Of a run's first trial."""
    return measure(run_dir / FIRST, [Drawing()])


@pytest.fixture
def row(record: Measurement) -> Row:
    return replace(judged_row("r", record), valid=True)


def of_trial(row: Row, record: Measurement, verdict: Verdict, *drawn: Figure) -> Page:
    """The part of a page on one trial."""
    return Page(
        unpacked(trials([Shown(row, record, judge(Trial(record)), None, verdict)], [drawn]))
    )


def test_nothing_is_fetched_and_nothing_runs_but_the_page_s_own_script(run_dir: Path) -> None:
    text = made(run_dir)
    page = Page(text)
    assert not page.all("img", "iframe", "object", "embed")
    kinds = [one.get("type") for one in page.all("script")]
    assert kinds == ["application/gzip"] * 2 + [None]
    assert not any("src" in one for one in page.all("script"))
    assert [link["href"] for link in page.all("link")] == ["data:,"]
    assert all(str(link["href"]).startswith("#") for link in page.all("a"))
    text = text.replace(scripts(), "")
    assert set(re.findall(r"https?://[^\s\"'<>]+", text)) <= {"http://www.w3.org/2000/svg"}
    assert "url(" not in text
    assert "@import" not in text


def test_its_policy_allows_this_script_and_this_style_only(run_dir: Path) -> None:
    text = made(run_dir)
    [policy] = [one for one in Page(text).all("meta") if one.get("http-equiv")]
    allowed = dict(one.strip().split(" ", 1) for one in str(policy["content"]).split(";"))
    assert text.index("http-equiv") < text.index("<title>") < text.index("<style>")
    [own] = re.findall("<script>(.*?)</script>", text, re.DOTALL)
    [packed] = re.findall('id="vega">(.*?)</script>', text)
    [style] = re.findall("<style>(.*?)</style>", text, re.DOTALL)
    assert gzip.decompress(base64.b64decode(packed)).decode() == vega() == bundled()
    assert allowed["script-src"] == f"{digest(own)} {digest(vega())}"
    assert allowed["style-src"] == digest(style)
    assert allowed["default-src"] == "'none'"
    assert " style=" not in text.replace(scripts(), "")


def unpacked(text: str) -> str:
    """A page with its packed tables in their places."""

    def table(found: re.Match[str]) -> str:
        inside = gzip.decompress(base64.b64decode(found[1])).decode()
        return inside if inside.startswith("<") else found[0]

    return re.sub('<script type="application/gzip">(.*?)</script>', table, text)


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_ids_are_unique_and_every_reference_has_one(run_dir: Path) -> None:
    page = Page(made(run_dir))
    ids = [value for _, attributes in page.elements if (value := attributes.get("id"))]
    assert len(ids) == len(set(ids))
    wanted = {str(link["href"])[1:] for link in page.all("a")}
    for _, attributes in page.elements:
        wanted |= set(str(attributes.get("aria-labelledby") or "").split())
    assert wanted <= set(ids)
    # So does every figure and table say what it is.
    assert len(page.all("svg")) == len(page.all("desc")) == len(page.all("figure")) == 4
    boxes = [box for box in page.all("div") if box.get("class") == "scroll"]
    assert boxes
    assert all(box["aria-label"] and box["tabindex"] == "0" for box in boxes)
    assert all(header.get("scope") in ("col", "row") for header in page.all("th"))


def test_sections_are_in_the_order_a_reader_wants(run_dir: Path) -> None:
    write_series(run_dir)
    page = Page(made(run_dir))
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
    ids = "figures question results prediction loads trials validity fairness run again"
    assert [one["id"] for one in page.all("h2")] == ids.split()
    assert "Does a differ from b?" in page.text
    assert re.search(r"Host \S*-2c-\S+\. Point at a figure", page.text)
    assert "No: N / 0.2 s bounds both." in page.text
    assert "make run EXP=aa LAUNCHES=7" in page.text
    assert "2 × within" in page.text


def test_the_same_run_gives_the_same_bytes_wherever_it_lies(run_dir: Path, tmp_path: Path) -> None:
    write_series(run_dir)
    first = made(run_dir)
    figures = {path.name: path.read_bytes() for path in (run_dir / "figures").iterdir()}
    # By load; what is drawn of a trial is in the page alone.
    assert len(figures) == 4
    assert all(b"var(--" not in svg and b"#7c3cf7" in svg for svg in figures.values())
    assert derive(run_dir, [Drawing()]).changed == ()
    moved = tmp_path / "elsewhere"
    run_dir.rename(moved)
    (moved / "report.html").unlink()
    (moved / "figures" / "throughput-closed-downstream-wrk2.svg").unlink()
    assert made(moved) == first
    assert {path.name: path.read_bytes() for path in (moved / "figures").iterdir()} == figures
    assert derive(moved, [Drawing()]).changed == ()


def test_figures_that_are_no_longer_made_are_removed(run_dir: Path) -> None:
    made(run_dir)
    (run_dir / "figures" / "old.svg").write_text("")
    (run_dir / "figures" / "mine.txt").write_text("")
    derived = derive(run_dir, [Drawing()])
    assert derived.changed == ("figures",)
    assert not (run_dir / "figures" / "old.svg").exists()
    assert (run_dir / "figures" / "mine.txt").exists()


def test_a_quick_look_and_a_run_cut_short_are_marked_loudly(tmp_path: Path) -> None:
    quick = replace(EXPERIMENT, scale=0.1)
    run_dir = write_manifest(tmp_path, experiment=quick, status="interrupted")
    write_raw(run_dir, plans(1))
    page = Page(made(run_dir))
    [loud] = [one for one in page.all("div") if one.get("role") == "note"]
    assert loud["class"] == "loud"
    assert "SCALE=0.1: every duration was multiplied by 0.1." in page.text
    assert "The run is interrupted, not complete:" in page.text


def test_an_invalid_trial_is_told_at_the_top_and_with_its_reason(run_dir: Path) -> None:
    tell(run_dir / FIRST, toxic_changes=["downstream at 12:00:01"])
    page = Page(made(run_dir))
    assert "1 of 28 trials is invalid" in page.text
    assert page.text.count("toxics changed during the trial: downstream at 12:00:01") == 2


def test_no_text_can_become_markup(tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)> & \"quoted\" 'too' `a<b`"
    run_dir = write_manifest(
        tmp_path,
        experiment=replace(EXPERIMENT, question=evil, hypothesis=evil, words=(evil,)),
        notes=(evil,),
        host={"cpu_model": evil, "images": {evil: {"id": evil}}},
        fairness=Fairness({evil: evil}, {evil: {"a": evil, "b": evil}}, {}),
    )
    write_raw(run_dir, plans(1))
    page = Page(made(run_dir))
    assert not page.all("img")
    assert page.text.count("onerror") >= 8


EXCESS = Excess(200.0, 800.0, 10.0, {"queue": 800.0})


def test_no_folder_s_name_becomes_markup(run_dir: Path, record: Measurement, row: Row) -> None:
    evil = "01-x\" onfocus='alert(1)' autofocus><img src=x>&"
    row = replace(row, trial=evil, valid=False)
    pool = Standing(1, 1, evil, evil, resource="worker pool", share=0.9)
    [figure] = drawn(evil, "a", WITH_A_LINE, {})
    page = of_trial(
        row, record, Verdict(NONE, STRONG, "none", EXCESS, (pool,), (Missing("job", evil),)), figure
    )
    whole = html(content(run_dir, rows=(row,)), (), (), ())
    for part in (page, Page(f"<figure>{figure.svg}</figure>"), Page(whole)):
        names = {name for _, attributes in part.elements for name in attributes}
        assert not {"onfocus", "autofocus"} & names
        assert not part.all("img")
    assert page.all("details")[0]["id"] == f"trial-{evil}"
    assert f'"#trial-{evil}"' not in whole


def write_series(run_dir: Path) -> None:
    """Of the first four trials."""
    for raw in sorted((run_dir / "raw").iterdir())[:4]:
        answered(raw)


def test_a_trial_is_drawn_over_time_from_the_series_kept_with_it(run_dir: Path) -> None:
    write_series(run_dir)
    text = made(run_dir)
    page = Page(text)
    assert len(page.all("svg")) == 4
    assert len(page.all("figure")) == 4 + 4 * 2
    names = ["What waits, and for what", "CPU of containers and host"]
    assert [one["aria-label"] for one in page.all("figure")[4:]] == 4 * names
    assert "These figures need this page's script." in page.text
    assert len(text) - len(scripts()) < 200_000
    # Each has its specification in the page.
    packed = re.findall('<script type="application/gzip">([^<]*)</script>', text)
    texts = [gzip.decompress(base64.b64decode(one)).decode() for one in packed]
    specs = [one for text in texts if text.startswith("[") for one in json.loads(text)]
    assert len(specs) == 4 + 4 * 2
    assert all(one["$schema"].endswith("/vega-lite/v6.json") for one in specs)


def test_the_figures_of_a_trial_mark_what_was_done(run_dir: Path) -> None:
    write_series(run_dir)
    # The window of `record()` begins at 10.5 s.
    peaks = [{"started_s": 11.5, "ended_s": 12.5}]
    tell(run_dir / FIRST, toxic_changes=["downstream at 12:00:01"], peaks=peaks)
    said = "marked in its figures 1 at 1.0 s: spike of 0 connections begins; 2 at 2.0 s"
    assert said in Page(made(run_dir)).text


def test_a_run_without_series_says_so_and_draws_nothing(run_dir: Path) -> None:
    assert "No series were stored" in Page(made(run_dir)).text
    answered(run_dir / "raw" / "02-b-closed")
    page = Page(made(run_dir))
    assert "Its series were not stored" in page.text
    assert len(page.all("figure")) == 4 + 2


def test_a_trial_without_figures_does_not_stop_the_page(small: Path) -> None:
    engine = FakeEngine()
    engine.broken = "no such line"
    derive(small, [engine])
    page = Page((small / "report.html").read_text())
    assert "4 of 4 trials are invalid" in page.text
    assert next(one["id"] for one in page.all("h2")) == "question"
    assert not (small / "figures").exists()


# Bounds, and what they follow from.
PREDICTED = {
    "bounds": [
        {"resource": "host CPU", "rps": 490.0, "formula": "2 / 4.08 ms", "estimate": True},
        {"resource": "connections", "rps": 500.0, "formula": "100 / 0.2 s", "estimate": False},
    ],
    "demand": {
        "connections": 100, "requests": 2000,
        "server": {"a": 0.0, "b": 0.001, "low": 0.0, "rates": 1},
        "host": {"a": 0.0, "b": 0.00408, "low": 0.0, "rates": 1},
    },
    "expected_p95_ms": 204.1,
}  # fmt: skip


def test_verdict_and_prediction_stand_at_the_top_and_with_each_trial(small: Path) -> None:
    tell(small / FIRST, **PREDICTED)
    text = made(small)
    page = Page(text)
    assert text.index('id="question"') < text.index("What limited") < text.index('id="prediction"')
    assert "What limited a, closed" in page.text
    assert "unknown: no series of its window were stored" in page.text
    said = "≈ 490 host CPU (extrapolated: 2 / 4.08 ms); ≤ 500 connections (100 / 0.2 s)"
    assert said in page.text
    report = (small / "REPORT.md").read_text()
    assert report.index("### What limited") < report.index("## Predicted and measured")
    row = "| a, closed 100 | 500 | 490 | host CPU | 500 | 102% | 204 | 210 | 1 of 1 |"
    assert row in report


def test_a_trial_tells_how_the_delay_was_drawn(small: Path) -> None:
    assert "drawn for each call" not in Page(made(small)).text
    tell(small / FIRST, {"spread": asdict(SPREAD)})
    said = f"(mean 200 ms, p95 {SPREAD.p95_ms:.4g}, p99 {SPREAD.p99_ms:.4g})"
    assert f"drawn for each call {SPREAD.words} {said}" in Page(made(small)).text


@pytest.mark.parametrize(
    ("ms", "told"),
    [
        (None, "not measured: taken as none"),
        (0.0, "a round trip too short to tell"),
        (0.04, "a round trip 0.04 ms"),
    ],
)
def test_a_trial_tells_of_the_network(small: Path, ms: float | None, told: str) -> None:
    assert "a round trip" not in Page(made(small)).text
    ways = (Way(TO_SERVER, 0.31, 1450), Way(TO_CALLED, ms))
    tell(small / FIRST, {"ways": [asdict(way) for way in ways]})
    text = Page(made(small)).text
    there = "a round trip 0.31 ms, packets of up to 1,450 bytes"
    assert f"network, generator and server {there}" in text
    assert f"network, server and downstream {told}" in text


def test_answers_stand_under_the_question(run_dir: Path) -> None:
    found = Finding("breaking point", "a", 1, 400.0, "connections", None, None)
    derived = derive(run_dir, [Drawing()])
    none = Verdict(NONE, STRONG, "none", EXCESS)
    of = content(
        run_dir,
        rows=derived.rows,
        comparisons=derived.comparisons,
        findings=(found,),
        verdicts=tuple((row.trial, none) for row in derived.rows),
    )
    whole = html(of, (), (), ())
    parts = ("Does a differ from b?", "breaking point: 400 connections", ">What limited<",
             ">Comparisons<", 'id="prediction"')  # fmt: skip
    places = [whole.index(part) for part in parts]
    assert places[0] < whole.index("No: N / 0.2 s bounds both.") < places[1]
    assert places == sorted(places)
    titles = re.findall(r"^### (.*)$", markdown.text(of), re.MULTILINE)
    assert titles[1:4] == ["Findings", "What limited", "Comparisons"]


def test_a_lane_without_a_valid_trial_is_there_and_says_so(small: Path) -> None:
    for trial in ("02-b-closed", "04-b-open"):
        tell(small / "raw" / trial, toxic_changes=["at 12:00"])
    text = Page(made(small)).text
    assert "0 of 2 0" in text
    assert "unknown: no series of its window were stored (no valid trial)" in text
    report = (small / "REPORT.md").read_text()
    assert "> **2 of 4 trials are invalid**, and what was measured in them is in no" in report


def test_that_there_is_nothing_to_compare_is_only_said_of_one_server(tmp_path: Path) -> None:
    said = "Only one server was measured"
    assert said in made(write_raw(write_manifest(tmp_path), plans(1, ("a",))))
    cases = (Case("small-pool", "a", "/downstream", 100, ("worker pool",)),)
    in_kind = replace(EXPERIMENT, kind="planted", servers=("a",), own=to_json(Planted(cases)))
    other = write_manifest(tmp_path, "20260131T120000Z-planted", experiment=in_kind)
    assert said not in made(write_raw(other, plans(1, ("a",))))
    empty = write_raw(write_manifest(tmp_path, "20260131T120000Z-empty"), ())
    (empty / "raw").mkdir()
    assert said not in (text := made(empty))
    assert "No trial ended: nothing came out." in text


def test_every_standing_of_a_trial_is_a_row_with_its_query(record: Measurement, row: Row) -> None:
    evidence = Evidence("busy <workers>", 200.0, "threads", 'lab_worker_pool_active{server="a"}')
    shares = {"share": 0.97, "measured": 0.9}
    pool = Standing(200, 200, "threads", resource="worker pool", **shares, evidence=(evidence,))
    missing = (Missing("job", "jvm"),)
    verdict = Verdict("worker pool", STRONG, "excess", EXCESS, (pool,), missing)
    packed = trials([Shown(row, record, judge(Trial(record)), None, verdict)], [()])
    assert "lab_worker_pool_active" not in packed
    page = of_trial(row, record, verdict)
    said = "worker pool, 200 of 200 threads: 800 ms above R0 are worker pool 97%"
    assert f"Verdict : {said}, unexplained 3% (strong evidence)" in page.text
    assert "worker pool 200 of 200 threads 97% 90% – –" in page.text
    assert 'busy <workers> 200 threads lab_worker_pool_active{server="a"}' in page.text
    assert "Prometheus did not see the whole window of jvm" in page.text


SPLIT = {
    "cpu_server_us": 100.0, "cpu_proxy_us": 60.0, "cpu_downstream_us": 40.0,
    "cpu_generator_us": 30.0, "cpu_observation_us": 8.25,
}  # fmt: skip


def test_a_trial_tells_who_spent_its_cpu_time(record: Measurement, row: Row) -> None:
    split = replace(row, **SPLIT)
    text = of_trial(split, record, Verdict(NONE, STRONG, "none", EXCESS)).text
    assert "server 100, proxy 60, downstream 40, generator 30, observation 8.2 µs host CPU" in text


def are_in_both_reports(of: Content, *rows: str) -> str:
    """The cells of these rows are in both reports. The text of one."""
    report, page = markdown.text(of), Page(html(of, (), (), ())).text
    for cells in rows:
        assert f"| {' | '.join(cells.split())} |" in report
        assert cells in page
    return report


def test_both_reports_split_the_cpu_time_of_each_load_and_mode(run_dir: Path, row: Row) -> None:
    known = replace(row, **SPLIT)
    twice = replace(known, trial="05-a", cpu_server_us=150.0, cpu_proxy_us=None)
    bad = replace(known, trial="07-a", cpu_server_us=900.0, valid=False)
    load = {"mode": "open", "offered_rps": 450}
    opened = replace(known, trial="08-a", cpu_server_us=200.0, **load)
    are_in_both_reports(
        content(run_dir, rows=(known, twice, bad, opened)),
        "100 – closed a 125 138 60 40 30 8.2",
        "100 450 open a 200 138 60 40 30 8.2",
    )
    assert "its CPU µs" in markdown.text(content(run_dir, rows=(row,)))
    nothing = replace(row, cpu_generator_us=None)
    assert "its CPU µs" not in markdown.text(content(run_dir, rows=(nothing,)))


TIMES = {
    "time_generator_ms": 0.0, "time_connect_ms": 0.0, "time_queue_ms": 3.0, "time_own_ms": 1.0,
    "time_pending_ms": 0.5, "time_path_ms": 2.5, "time_downstream_ms": 201.0,
    "time_unexplained_ms": 2.0,
}  # fmt: skip


def test_both_reports_say_where_the_mean_time_goes(run_dir: Path, row: Row) -> None:
    light = replace(row, **TIMES)
    twice = replace(light, trial="02-a", time_own_ms=3.0)
    bad = replace(light, trial="03-a", time_own_ms=900.0, valid=False)
    untold = replace(row, trial="04-a")
    more = {"concurrency": 400, "time_queue_ms": 15.0, "time_path_ms": 5.5}
    heavy = replace(light, trial="05-a", **more)
    p95 = milliseconds(light.raw_p95_ms)
    report = are_in_both_reports(
        content(run_dir, rows=(light, twice, bad, untold, heavy)),
        # A tenth of the 10 ms above the downstream's, and of 24.
        f"{p95} 211 0.0 0.0 3.0 2.0 0.5 2.5 201 2.0 1.0",
        f"{p95} 225 0.0 0.0 15.0 1.0 0.5 5.5 201 2.0 2.4",
    )
    assert "| mean | generator | connect | queue | own | connection | path | downstream |" in report
    assert "Where the time goes" not in markdown.text(content(run_dir, rows=(untold,)))


def test_100_trials_have_at_most_3_mb(run_dir: Path, record: Measurement, row: Row) -> None:
    random = Random(1)
    query = 'sum(avg_over_time(lab_worker_pool_active{server="virtual-threads"}[5s]))'
    ranked = tuple(
        Standing(
            *(random.random(), 1.0, "of the time"),
            resource=resource,
            share=random.random(),
            evidence=tuple(
                Evidence(f"number {one} of it", random.random() * 1000, "threads", query)
                for one in range(4)
            ),
        )
        for resource in RESOURCES
    )
    lines = [
        Line(f"line {at % 4}", tuple((float(s), random.random() * 1000) for s in range(31)))
        for at in range(12 * 4)
    ]
    panels = tuple(
        Panel(f"Panel {at}", "reqps", "What it is. " * 10, tuple(lines[4 * at : 4 * at + 4]))
        for at in range(12)
    )
    verdict = Verdict(RESOURCES[0], STRONG, "excess", EXCESS, ranked)
    shown, over_time = [], []
    for number in range(1, 101):
        trial = f"{number:03d}-virtual-threads-closed-c1000"
        load = {"launch": number % 10, "concurrency": number // 10 + 1}
        of = replace(row, trial=trial, **load)
        shown.append(Shown(of, record, judge(Trial(record)), None, verdict))
        over_time.append(tuple(drawn(trial, "virtual-threads", Observed(30.0, 1.0, panels), {})))
    of = content(run_dir, rows=tuple(one.row for one in shown))
    page = html(of, shown, by_load(of.rows, LaneStyles.of(("a",), of.rows)), over_time)
    assert page.count("<figure ") == 1200
    assert 1_000_000 < len(page) <= 3_000_000
