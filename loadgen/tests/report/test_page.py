"""report.html: complete, self-contained, safe with any text, the same every time."""

import base64
import gzip
import hashlib
import itertools
import json
import re
from copy import replace
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import asdict

from lab.app.derive import derive
from lab.judge import trial as judging
from lab.judge.checks import judge
from lab.judge.resources import RESOURCES
from lab.load.measure import measure
from lab.model import (
    NONE,
    STRONG,
    TO_CALLED,
    TO_SERVER,
    Evidence,
    Fairness,
    Missing,
    Standing,
    Verdict,
    Way,
)
from lab.report import page as pages
from lab.report.page.over_time import figure
from lab.report.page.panels import PANELS, Line
from lab.report.page.script import bundled, scripts, vega
from lab.report.result import Trial
from report.test_blocks import Page
from support.drawn import Drawing, answered
from support.drawn_delay import SPREAD
from support.fakes import FakeEngine, judged_row
from support.results import EXCESS, result
from support.runs import EXPERIMENT, plans, tell, write_manifest, write_raw

FIRST = "raw/01-a-closed"
# Of the first trials' loads: goodput, p95 and p99, of two modes.
BY_LOAD = 6


def made(run_dir: Path) -> str:
    derive(run_dir, [Drawing()])
    return (run_dir / "report.html").read_text(encoding="utf-8")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A run of one launch."""
    return write_raw(write_manifest(tmp_path), plans(1))


@pytest.fixture
def trial(run_dir: Path) -> Trial:
    """A run's first, without what limited it."""
    measured = measure(run_dir / FIRST, [Drawing()])
    row = replace(judged_row("r", measured), valid=True)
    return Trial(
        measured, judge(judging.Trial(measured)), Verdict(NONE, STRONG, "none", EXCESS), row
    )


def write_series(run_dir: Path) -> None:
    """Of the first four trials."""
    for raw in sorted((run_dir / "raw").iterdir())[:4]:
        answered(raw)


def packed(text: str) -> list[str]:
    """What the page has packed, without its script."""
    found = re.findall('<script type="application/gzip">([^<]*)</script>', text)
    return [gzip.decompress(base64.b64decode(one)).decode() for one in found]


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_nothing_is_fetched_and_its_policy_allows_its_own_script_only(run_dir: Path) -> None:
    text = made(run_dir)
    page = Page(text)
    assert not page.all("img", "iframe", "object", "embed")
    assert not any("src" in one for one in page.all("script"))
    assert [link["href"] for link in page.all("link")] == ["data:,"]
    assert all(str(link["href"]).startswith("#") for link in page.all("a"))
    own, [style] = text.replace(scripts(), ""), re.findall("<style>(.*?)</style>", text, re.DOTALL)
    assert set(re.findall(r"https?://[^\s\"'<>]+", own)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert not re.search(r"url\(|@import| style=", own)
    [policy] = [one for one in page.all("meta") if one.get("http-equiv")]
    allowed = dict(one.strip().split(" ", 1) for one in str(policy["content"]).split(";"))
    assert text.index("http-equiv") < text.index("<title>") < text.index("<style>")
    [script] = re.findall("<script>(.*?)</script>", text, re.DOTALL)
    [unpacked] = re.findall('id="vega">(.*?)</script>', text)
    assert gzip.decompress(base64.b64decode(unpacked)).decode() == vega() == bundled()
    assert allowed["script-src"] == f"{digest(script)} {digest(vega())}"
    assert allowed["style-src"] == digest(style)
    assert allowed["default-src"] == "'none'"


def test_ids_are_unique_and_every_reference_has_one(run_dir: Path) -> None:
    page = Page(made(run_dir))
    ids = [value for _, attributes in page.elements if (value := attributes.get("id"))]
    assert len(ids) == len(set(ids))
    wanted = {str(link["href"])[1:] for link in page.all("a")}
    for _, attributes in page.elements:
        wanted |= set(str(attributes.get("aria-labelledby") or "").split())
    assert wanted <= set(ids)
    # So does every figure and table say what it is.
    drawings = page.all("svg")
    assert len(drawings) == len(page.all("figure")) == BY_LOAD
    assert all(len(str(drawing["aria-label"])) > 50 for drawing in drawings)
    boxes = [box for box in page.all("div") if box.get("class") == "scroll"]
    assert boxes
    assert all(box["aria-label"] and box["tabindex"] == "0" for box in boxes)
    assert all(header.get("scope") in ("col", "row") for header in page.all("th"))


def test_sections_are_in_the_order_a_reader_wants(run_dir: Path) -> None:
    write_series(run_dir)
    text = made(run_dir)
    page = Page(text)
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
    ids = "figures question limits loads cpu ab trials validity fairness run again"
    assert [one["id"] for one in page.all("h2")] == ids.split()
    # The answer comes first.
    assert text.index("reached") < text.index("<nav")
    for said in ("Does a differ from b?", "N / 0.2 s bounds both.", "make run EXP=aa LAUNCHES=7"):
        assert said in page.text


def test_the_same_run_gives_the_same_bytes_wherever_it_lies(run_dir: Path, tmp_path: Path) -> None:
    write_series(run_dir)
    first = made(run_dir)
    figures = {path.name: path.read_bytes() for path in (run_dir / "figures").iterdir()}
    # By load; what is drawn of a trial is in the page alone.
    assert len(figures) == BY_LOAD
    assert all(b"var(--" not in svg and b"#7c3cf7" in svg for svg in figures.values())
    assert derive(run_dir, [Drawing()]).changed == ()
    moved = tmp_path / "elsewhere"
    run_dir.rename(moved)
    (moved / "report.html").unlink()
    (moved / "figures" / "p95-open-downstream-wrk2.svg").unlink()
    # One that is no longer made is removed, and what is somebody's own stays.
    (moved / "figures" / "old.svg").write_text("")
    (moved / "figures" / "mine.txt").write_text("")
    assert made(moved) == first
    (moved / "figures" / "mine.txt").unlink()
    assert {path.name: path.read_bytes() for path in (moved / "figures").iterdir()} == figures


def test_what_a_reader_must_know_first_is_loud(tmp_path: Path) -> None:
    quick = replace(EXPERIMENT, scale=0.1)
    run_dir = write_manifest(tmp_path, experiment=quick, status="interrupted")
    write_raw(run_dir, plans(1))
    tell(run_dir / FIRST, toxic_changes=["downstream at 12:00:01"])
    page = Page(made(run_dir))
    [loud] = [one for one in page.all("div") if one.get("role") == "note"]
    assert loud["class"] == "loud"
    for said in ("SCALE=0.1: every", "The run is interrupted", "1 of 4 trials invalid"):
        assert said in page.text
    # Under Validity, and with the trial twice.
    assert page.text.count("toxics changed during the trial: downstream at 12:00:01") == 3


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


def test_no_folder_s_name_becomes_markup(trial: Trial) -> None:
    evil = "01-x\" onfocus='alert(1)' autofocus><img src=x>&"
    row = replace(trial.row, trial=evil, valid=False)
    pool = Standing(1, 1, evil, evil, resource="worker pool", share=0.9)
    verdict = Verdict(NONE, STRONG, "none", EXCESS, (pool,), (Missing("job", evil),))
    drawn = figure(evil, PANELS[0], [Line(evil, ((0.0, 1.0), (1.0, 2.0)))], 2.0, ())
    shown = replace(trial, row=row, verdict=verdict)
    text, _ = pages.build(result([row], {evil: verdict}), [(shown, [drawn])])
    page = Page(text)
    names = {name for _, attributes in page.elements for name in attributes}
    assert not {"onfocus", "autofocus"} & names
    assert not page.all("img")
    assert f"trial-{evil}" in [one.get("id") for one in page.all("details")]


def test_a_trial_is_drawn_over_time_from_the_series_kept_with_it(run_dir: Path) -> None:
    assert "No series were stored" in Page(made(run_dir)).text
    write_series(run_dir)
    # The window of `record()` begins at 10.5 s.
    peaks = [{"started_s": 11.5, "ended_s": 12.5}]
    tell(run_dir / FIRST, toxic_changes=["downstream at 12:00:01"], peaks=peaks)
    text = made(run_dir)
    page = Page(text)
    names = ["What waits, and for what", "CPU of containers and host"]
    assert [one["aria-label"] for one in page.all("figure")[BY_LOAD:]] == 4 * names
    assert len(page.all("svg")) == BY_LOAD
    assert "Its series were not stored" in page.text
    assert "marked in its figures 1 at 1.0 s: spike of 0 connections begins; 2 at" in page.text
    # Each has its specification in the page.
    specs = [spec for one in packed(text) for spec in json.loads(one)]
    assert len(specs) == BY_LOAD + 4 * 2
    assert all(spec["$schema"].endswith("/vega-lite/v6.json") for spec in specs)
    assert len(text) - len(scripts()) < 250_000


def test_a_trial_without_figures_does_not_stop_the_page(small: Path) -> None:
    engine = FakeEngine()
    engine.broken = "no such line"
    derive(small, [engine])
    page = Page((small / "report.html").read_text())
    assert "4 of 4 trials invalid" in page.text
    assert next(one["id"] for one in page.all("h2")) == "question"
    assert not (small / "figures").exists()


def test_that_there_is_nothing_to_compare_is_only_said_of_one_server(tmp_path: Path) -> None:
    said = "Only one server was measured"
    assert said in made(write_raw(write_manifest(tmp_path), plans(1, ("a",))))
    empty = write_raw(write_manifest(tmp_path, "20260131T120000Z-empty"), ())
    (empty / "raw").mkdir()
    text = made(empty)
    assert said not in text
    assert "No trial ended: nothing came out." in text


@pytest.mark.parametrize(
    ("before", "values", "says"),
    [
        ({"spread": asdict(SPREAD)}, {}, f"drawn for each call {SPREAD.words} (mean 200 ms, p95"),
        ({"ways": [asdict(Way(TO_SERVER, 0.31, 1450))]}, {}, "a round trip 0.31 ms, packets of up"),
        ({"ways": [asdict(Way(TO_CALLED, None))]}, {}, "server and downstream not measured: taken"),
        ({"ways": [asdict(Way(TO_CALLED, 0.0))]}, {}, "a round trip too short to tell"),
        (
            {},
            {
                "bounds": [
                    {"resource": "host CPU", "rps": 490.0, "formula": "2 / 4 ms", "estimate": True},
                    {
                        "resource": "connections",
                        "rps": 500.0,
                        "formula": "N / R0",
                        "estimate": False,
                    },
                ]
            },
            "≈ 490 host CPU (extrapolated: 2 / 4 ms); ≤ 500 connections (N / R0)",
        ),
    ],
)
def test_a_trial_has_its_facts(
    small: Path, before: dict[str, object], values: dict[str, object], says: str
) -> None:
    assert says not in Page(made(small)).text
    tell(small / FIRST, before, **values)
    assert says in Page(made(small)).text


def test_every_standing_of_a_trial_is_a_row(trial: Trial) -> None:
    shares = {"share": 0.97, "measured": 0.9}
    pool = Standing(200, 200, "threads", resource="worker pool", **shares)
    missing = (Missing("job", "jvm"),)
    verdict = Verdict("worker pool", STRONG, "excess", EXCESS, (pool,), missing)
    row = replace(trial.row, cpu_server_us=100.0, cpu_proxy_us=60.0)
    text, _ = pages.build(result([row]), [(replace(trial, row=row, verdict=verdict), ())])
    page = Page(text)
    assert "200 of 200 threads; 1,800 ms above R0: worker pool 97%, unexplained 3%" in page.text
    assert "worker pool 200 of 200 threads 97% 90% – –" in page.text
    assert "Prometheus did not see the whole window of jvm" in page.text
    assert "CPU per answer, µs server 100, proxy 60, downstream –" in page.text


def test_100_trials_have_at_most_3_mb(trial: Trial) -> None:
    random = Random(1)
    query = 'sum(avg_over_time(lab_worker_pool_active{server="virtual-threads"}[5s]))'
    ranked = tuple(
        Standing(
            *(random.random(), 1.0, "of the time"),
            resource=resource,
            share=random.random(),
            evidence=(Evidence("a number of it", random.random(), "threads", query),) * 4,
        )
        for resource in RESOURCES
    )
    lines = [
        Line(f"line {at % 4}", [(float(s), random.random() * 1000) for s in range(31)])
        for at in range(12 * 4)
    ]
    verdict = Verdict(RESOURCES[0], STRONG, "excess", EXCESS, ranked)
    shown = []
    for number in range(1, 101):
        name = f"{number:03d}-virtual-threads-closed-c1000"
        load = {"launch": number % 10, "concurrency": number // 10 + 1}
        row = replace(trial.row, trial=name, **load)
        figures = [
            figure(f"{name}-{at}", panel, lines[4 * at : 4 * at + 4], 30.0, ())
            for at, panel in enumerate(PANELS)
        ]
        shown.append((replace(trial, row=row, verdict=verdict), figures))
    page, _ = pages.build(result([one.row for one, _ in shown]), shown)
    assert page.count("<figure ") >= 1200
    assert 1_000_000 < len(page) <= 3_000_000
