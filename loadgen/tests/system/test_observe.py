"""Series of a window: fetched from a fake Prometheus, stored, read back, asked."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest

from lab.errors import RawDataError
from lab.model import Observation, Series
from lab.store.series import NAME as SERIES
from lab.store.series import load, load_or_none
from lab.system.observe import MACHINE, observe, selectors
from support.fakes import START, FakeLab, plan, record

# The fake trial's window: from 10.5 s after the run began, for 15 s.
OPENS, CLOSES = START.timestamp() + 10.5, START.timestamp() + 25.5
REQUESTS = {"__name__": "lab_http_requests_total", "job": "server", "server": "a"}


def observed(lab: FakeLab, raw: Path) -> str | None:
    """What is wrong with what was kept."""
    found = observe(record(), 15.0, raw, lab.stack, lab.system)
    return found and unquote(found.cell)


def test_exactly_the_window_can_be_told_from_what_was_stored(lab: FakeLab, tmp_path: Path) -> None:
    lab.scraped.append((REQUESTS, lambda at: 100.0 * at + 1000))
    assert observed(lab, tmp_path) is None
    observation = load(tmp_path)
    assert observation.window == (OPENS, CLOSES)
    # 100 a second for 15 s; both edges lie between two scrapes.
    assert observation.increase("lab_http_requests_total", server="a") == pytest.approx(1500)
    points = observation.points("lab_http_requests_total")
    # 5 s more on both sides: scrapes at 6 … 30 s.
    assert points[0] == (START.timestamp() + 6, 1600)
    assert points[-1] == (START.timestamp() + 30, 4000)
    assert observation.covers("server")
    assert observation.covers("cadvisor")
    # What the machine has is kept as a rule says.
    assert {value for _, value in observation.points("machine:machine_cpu_cores:max")} == {2}


def test_the_file_is_the_same_whenever_it_is_written(lab: FakeLab, tmp_path: Path) -> None:
    lab.scraped.append((REQUESTS, lambda at: 0.1 * at))
    observed(lab, tmp_path)
    first = (tmp_path / SERIES).read_bytes()
    lab.scraped.reverse()
    observed(lab, tmp_path)
    assert (tmp_path / SERIES).read_bytes() == first
    header = json.loads(gzip.decompress(first).splitlines()[0])
    assert header["window"] == [round(OPENS * 1000), round(CLOSES * 1000)]
    assert header["prometheus"] == "2.53.3"


def test_samples_that_are_not_numbers_are_left_out(lab: FakeLab, tmp_path: Path) -> None:
    lab.scraped.append((REQUESTS, lambda at: float("nan") if at < 20 else at))
    lab.scraped.append(({**REQUESTS, "outcome": "x"}, lambda at: float("inf")))
    observed(lab, tmp_path)
    points = load(tmp_path).points("lab_http_requests_total")
    assert len(points) == 11


def until(last: float) -> Callable[[float], float]:
    """The values of a series that ends."""
    return lambda at: 1.0 if at <= last else float("nan")


def of_container(service: str, last: float) -> tuple[dict[str, str], Callable[[float], float]]:
    labels = {"__name__": "container_cpu_usage_seconds_total", "job": "cadvisor"}
    return {**labels, "service": service}, until(last)


SECOND = {"__name__": "up", "job": "cadvisor", "instance": "b:8080"}
WAITS: dict[str, tuple[float, list[object], Callable[[FakeLab], object], float]] = {
    "for a job": (25.0, [], lambda lab: setattr(lab, "scraped_until", 1e9), 4),
    "for nothing": (26.0, [], lambda lab: None, 0),
    # One that is gone (c) has no sample near the end. The first scrape after the window, at 26 s,
    # has no newer one of b; at 28 s it must have one.
    "for a container that was read too early": (
        26.0,
        [of_container("a", 1e9), of_container("b", 25.0), of_container("c", 20.0)],
        lambda lab: setattr(lab, "scraped_until", 28.0),
        4,
    ),
    # The first machine's is there; of the second nothing has come since 24 s, until it answers.
    "for each machine": (
        1e9,
        [(SECOND, until(24.0))],
        lambda lab: lab.scraped.__setitem__(-1, (SECOND, until(1e9))),
        4,
    ),
}


@pytest.mark.parametrize("case", WAITS)
def test_it_waits(lab: FakeLab, tmp_path: Path, case: str) -> None:
    lab.scraped_until, more, happens, waits_s = WAITS[case]
    lab.scraped += more
    lab.system.at(4.0, lambda: happens(lab))
    assert observed(lab, tmp_path) is None
    assert lab.system.elapsed_s == pytest.approx(waits_s, abs=waits_s / 4)


def test_a_prometheus_that_fell_behind_keeps_what_it_has(lab: FakeLab, tmp_path: Path) -> None:
    lab.scraped_until = 25.0
    lab.scraped.append((REQUESTS, lambda at: at))
    assert observed(lab, tmp_path).startswith("observed-late jobs=server, jvm")
    observation = load(tmp_path)
    assert not observation.covers("server")
    assert observation.increase("lab_http_requests_total") is None


def test_scrapes_that_fail_at_the_end_are_waited_for(lab: FakeLab, tmp_path: Path) -> None:
    lab.scraped = [
        (labels, lambda at: float(at < 20)) if labels.get("job") == "jvm" else (labels, value)
        for labels, value in lab.scraped
    ]
    assert observed(lab, tmp_path) == "observed-late jobs=jvm"
    assert lab.system.elapsed_s == pytest.approx(15, abs=1)
    assert (load(tmp_path).covers("server"), load(tmp_path).covers("jvm")) == (True, False)


def test_a_prometheus_that_is_away_is_asked_again(lab: FakeLab, tmp_path: Path) -> None:
    lab.scraped.append((REQUESTS, lambda at: 100.0 * at + 1000))
    lab.down.add("prometheus")
    assert observed(lab, tmp_path).startswith("not-observed problem=prometheus: ")
    assert load_or_none(tmp_path) is None
    lab.system.at(lab.system.elapsed_s + 4.0, lab.down.clear)
    assert observed(lab, tmp_path) is None
    assert load(tmp_path).increase("lab_http_requests_total") == pytest.approx(1500)


def test_a_long_window_is_thinned(lab: FakeLab, tmp_path: Path) -> None:
    # 1801 s: every 4 s, and twice that on both sides.
    observe(record(plan(duration_s=1801)), 1801.0, tmp_path, lab.stack, lab.system)
    assert all(
        query.endswith("[1817s:4s]")
        for query in lab.queries
        if "[60" not in query and "[2m" not in query
    )


def test_only_the_trials_own_route_keeps_its_histogram() -> None:
    asked = selectors("a", "/block?wait_ms=5")
    assert 'lab_http_request_seconds_bucket{job="server",server="a",route="/block"}' in asked
    assert '{job="server",server="a",__name__!="lab_http_request_seconds_bucket"}' in asked
    # A path is taken as it is.
    foreign = selectors("my-service", "/a.b*(c)?d=1", foreign=True)
    assert MACHINE in foreign
    [clients] = [each for each in foreign if "loadgen" in each]
    pattern = re.findall(r'route=~"([^"]*)\|"', clients)[0].replace("\\\\", "\\")
    assert re.fullmatch(pattern, "/a.b*(c)")
    assert not re.fullmatch(pattern, "/aXb*(c)")
    assert not any("downstream" in each or 'job="server"' in each for each in foreign)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no gzip",
        gzip.compress(b"", mtime=0),
        gzip.compress(b'{"format":1}\n', mtime=0),
        gzip.compress(b'{"window":[1000,2000]}\n{"labels":{},"t":[1],"v":[]}\n', mtime=0),
        gzip.compress(b'{"window":[2000,1000]}\n', mtime=0),
        gzip.compress(b'{"window":[1000,2000]}\n', mtime=0)[:-9],
    ],
    # Packed bytes hold the time of day: as names they differ among xdist's workers.
    ids=range(7),
)
def test_a_broken_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / SERIES).write_bytes(content)
    with pytest.raises(RawDataError, match=r"series\.jsonl\.gz"):
        load_or_none(tmp_path)


def counter(*points: tuple[float, float], job: str = "server", **labels: str) -> Series:
    times, values = zip(*points, strict=True)
    return Series({"__name__": "n", "job": job, **labels}, times, values)


def up(*times: float, failed: tuple[float, ...] = ()) -> Series:
    values = tuple(0.0 if at in failed else 1.0 for at in times)
    return Series({"__name__": "up", "job": "server"}, times, values)


BORN = counter((12, 5), (20, 9), outcome="error")
BORN_HIGH = counter((14, 50_000), (20, 50_006))
WHOLE = counter((8, 0), (18, 10), outcome="ok")
ENDED = counter((8, 0), (15, 10), outcome="error")


RISES: dict[str, tuple[tuple[Series, ...], float | None]] = {
    # 8 at the window's start; 10, then 4 of a new process: +2 and +4; 1 more by its end.
    "a new process": ((counter((8, 6), (10, 10), (14, 4), (18, 6)),), 2 + 4 + 1),
    "born in the window, at zero": ((BORN, up(8, 12, 20)), 7),
    "perhaps not new, as its job was not seen before": ((BORN, up(12, 20)), None),
    "scrapes before it failed": (
        (BORN_HIGH, up(8, 10, 12, 14, 16, 20, failed=(10, 12))),
        None,
    ),
    "an earlier scrape failed": ((BORN_HIGH, up(8, 10, 12, 14, 20, failed=(8,))), 50_002),
    "to the window's end": ((WHOLE,), 7),
    "with one that ends too early": ((WHOLE, ENDED), None),
    "none": ((), None),
}


@pytest.mark.parametrize("case", RISES)
def test_the_rise_of_a_counter(case: str) -> None:
    series, rise = RISES[case]
    assert Observation((9.0, 16.0), series).increase("n") == pytest.approx(rise)
    assert Observation((9.0, 16.0), (WHOLE, ENDED)).increase("n", outcome="ok") == pytest.approx(7)


@pytest.mark.parametrize(
    ("closes", "scraped", "covered"),
    [
        (16.0, up(8, 14, 20), True),
        (16.0, up(8, 14, 20, failed=(8,)), False),
        (16.0, up(8, 14, 20, failed=(20,)), False),
        (16.0, up(8, 20, failed=(8, 20)), False),
        # Nor have those that failed in it, where they are many.
        (16.0, up(8, 10, 12, 14, 16, failed=(10, 12, 14)), False),
        # What is before it and after it is no matter, and of a long window one may be missing.
        (16.0, up(0, 8, 12, 16, 30), True),
        (39.0, up(8, 20, 30, 40), True),
    ],
)
def test_a_failed_scrape_has_not_seen_the_window(
    closes: float, scraped: Series, covered: bool
) -> None:
    assert Observation((9.0, closes), (scraped,)).covers("server") is covered


def test_points_of_several_series_are_not_mixed() -> None:
    seen = Observation((9.0, 16.0), (counter((8, 0), a="1"), counter((8, 0), a="2")))
    assert seen.points("n", a="1") == ((8, 0),)
    assert seen.increase("other") is None
    with pytest.raises(ValueError, match="2 series"):
        seen.points("n")


def test_a_quantile_of_the_window() -> None:
    def bucket(le: str, before: float, after: float) -> Series:
        labels = {"__name__": "h_bucket", "job": "server", "le": le}
        return Series(labels, (9.0, 16.0), (before, after))

    # In the window: 10 up to 0.1, 80 from there to 0.2, 10 beyond.
    seen = Observation(
        (9.0, 16.0),
        (bucket("0.1", 100, 110), bucket("0.2", 100, 190), bucket("+Inf", 100, 200)),
    )
    assert seen.quantile(0.5, "h") == pytest.approx(0.1 + 0.1 * 40 / 80)
    assert seen.quantile(0.95, "h") == 0.2
    assert seen.quantile(0.05, "h") == pytest.approx(0.05)
    assert seen.quantile(0.5, "other") is None
