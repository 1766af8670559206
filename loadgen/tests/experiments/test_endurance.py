"""Growth over legs, on memory whose growth was planted."""

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lab.errors import WordError
from lab.experiments import endurance, growth
from lab.experiments.endurance import Endurance
from lab.experiments.kind import Outcome
from lab.judge.heap import AFTER, heap_after_collections
from lab.model import Experiment, Finding, Observation, Row, Series, WarmCycle, Warmth
from lab.store import series
from lab.store.records import write_json
from lab.store.series import NAME as SERIES
from support.altered import invalid
from support.fakes import plan, record, snapshot
from support.foreign import foreign
from support.planned import all_of, experiment, planner, row

MIB = 2**20
LEG_S = 300
USED = "jvm_memory_pool_used_bytes"


def enduring(**changes: object) -> Experiment:
    whole = {"kind": "endurance", "own": Endurance(LEG_S), "modes": ("open",)}
    return experiment(**{**whole, "duration_s": 1500, **changes})


def order_of(of: Experiment) -> endurance.Design:
    return endurance.design(planner(of))


def test_servers_take_turns_leg_by_leg_on_one_jvm_in_a_launch() -> None:
    order = order_of(enduring())
    plans = all_of(order)
    assert (order.most, [one.server for one in plans]) == (10, ["a", "b"] * 5)
    assert {one.duration_s for one in plans} == {LEG_S}
    assert ({one.offered_rps for one in plans}, {one.asks_live for one in plans}) == ({148}, {True})
    assert plans[0].trial == "01-a-open-c100"
    plans = all_of(order_of(enduring(launches=2)))
    assert [one.launch for one in plans] == [1] * 10 + [2] * 10
    assert [one.server for one in plans[10:12]] == ["b", "a"]


@pytest.mark.parametrize(
    ("duration_s", "leg_s", "lengths"),
    [
        (1500, 300, [300] * 5),
        # Nine minutes in legs of five are five and four.
        (540, 300, [300, 240]),
        (330, 300, [300, 30]),
        (329, 300, [329]),
        (10, 3, [3, 3, 4]),
        (200, 300, [200]),
    ],
)
def test_legs_are_as_long_as_was_asked(duration_s: int, leg_s: int, lengths: list[int]) -> None:
    of = enduring(servers=("a",), duration_s=duration_s, own=Endurance(leg_s))
    assert [one.duration_s for one in all_of(order_of(of))] == lengths


def test_closed_legs_have_no_rate_and_an_open_leg_needs_one() -> None:
    closed = enduring(modes=("closed",), routes=("/compute",))
    assert {one.offered_rps for one in all_of(order_of(closed))} == {None}
    with pytest.raises(WordError, match="RATE=auto"):
        order_of(enduring(routes=("/compute",)))


def line(name: str, values: dict[float, float], **labels: str) -> Series:
    return Series({"__name__": name, "job": "jvm", **labels}, tuple(values), tuple(values.values()))


def keep(
    run_dir: Path,
    one: Row,
    number: int,
    resident: Callable[[float], float],
    old: Callable[[float], float] = lambda at: 1e6,
    old_after: Callable[[float], float] = lambda at: 0.0,
    started_ms: int = 1000,
    warmth: Warmth | None = None,
    live_bytes: int | None = None,
    watched: bool = False,
) -> None:
    """The raw folder of a leg that ran for 310 s, its window the last 300 s of them; samples
    every second. `resident` and `old` are bytes by seconds of load."""
    raw = run_dir / "raw" / one.trial
    raw.mkdir(parents=True)
    before = snapshot()
    before = dataclasses.replace(
        before, identity=dataclasses.replace(before.identity, start_time_ms=started_ms)
    )
    of = plan(trial=one.trial, duration_s=LEG_S)
    told = {"window_offset_s": 10.0, "run_s": 310.0, "live_heap_bytes": live_bytes}
    told["warmth"] = warmth or Warmth(True, ())
    write_json(raw / "trial.json", record(of, before=before, **told))
    # Other servers' legs lie between: the wall clock says nothing of load.
    opens = 1_000_000.0 + number * 2000
    loaded = {opens + s: number * 310 + 10 + s for s in range(-5, LEG_S + 6)}
    found = [
        line("process_resident_memory_bytes", {at: resident(x) for at, x in loaded.items()}),
        line(AFTER, dict.fromkeys(loaded, 0.0), pool="G1 Eden Space"),
        line(AFTER, dict.fromkeys(loaded, 2e6), pool="G1 Survivor Space"),
        line(AFTER, {at: old_after(x) for at, x in loaded.items()}, pool="G1 Old Gen"),
        line(USED, {at: x * 1e6 for at, x in loaded.items()}, pool="G1 Eden Space"),
        line(USED, {at: old(x) for at, x in loaded.items()}, pool="G1 Old Gen"),
        # One file more in each minute.
        line("process_open_fds", {at: 100.0 + x // 60 for at, x in loaded.items()}),
        line("jvm_threads_current", dict.fromkeys(loaded, 30.0)),
    ]
    series.write(raw, (opens, opens + LEG_S), "2.53", [], found[: 8 if watched else 6])


def kept(
    run_dir: Path,
    resident: Callable[[float], float],
    count: int = 5,
    of_leg: Callable[[int], dict[str, Any]] = lambda number: {},
    **changes: Any,
) -> list[Row]:
    """Legs of a server of that resident memory; `changes` are as of `keep`, and `of_leg` those of
    the leg with that number."""
    rows = [row(plan(trial=f"{number + 1:02d}-a")) for number in range(count)]
    for number, one in enumerate(rows):
        keep(run_dir, one, number, **{"resident": resident, **changes, **of_leg(number)})
    return rows


def lost(rows: list[Row], at: int, reason: str = "toxics-touched") -> None:
    """This leg is invalid."""
    rows[at] = dataclasses.replace(rows[at], **invalid(reason))


def growing(at: float) -> float:
    """36 MiB an hour."""
    return 3e8 + at * 36 * MIB / 3600


def findings(run_dir: Path, rows: list[Row]) -> dict[str, Finding]:
    found = endurance.findings(Outcome(enduring(servers=("a",)), rows, run_dir))
    return {one.name: one for one in found if one.server == "a"}


def test_planted_growth_is_found_per_hour_of_load(tmp_path: Path) -> None:
    # 36 MiB an hour resident, and 3.6 MiB an hour of old objects.
    rows = kept(tmp_path, growing, old=lambda s: 1e6 + s * 3.6 * MIB / 3600)
    found = findings(tmp_path, rows)
    resident, heap = found[growth.RESIDENT], found[growth.HEAP]
    assert (resident.value, resident.unit) == (pytest.approx(36, rel=5e-3), "MiB/h")
    assert resident.low <= resident.value <= (resident.high or 0)
    assert resident.text.startswith("resident memory: +36.00 MiB/h (95 % interval +36.")
    # 286 MiB, and 36 MiB/h × 0.14 and 0.4 h.
    assert ", from 291 to 301 MiB once the first third was over; at first 286;" in resident.text
    assert resident.text.endswith("; over 0.43 h of load")
    assert heap.value == pytest.approx(3.6, rel=1e-3)
    assert "; no leg collected the old generation, so what died there within it" in heap.text


def test_files_and_threads_are_watched_too(tmp_path: Path) -> None:
    rows = kept(tmp_path, growing, watched=True)
    found = endurance.findings(Outcome(enduring(servers=("a",)), rows, tmp_path))
    of = {(one.server, one.name): one for one in found if one.value is not None}
    assert list(of) == [
        ("a", name) for name in (growth.HEAP, growth.RESIDENT, growth.FILES, growth.THREADS)
    ]
    assert of["a", growth.FILES].value == pytest.approx(60, rel=0.1)
    assert "no growth shown" not in of["a", growth.FILES].text
    assert of["a", growth.THREADS].value == 0.0


def test_no_growth_is_said(tmp_path: Path) -> None:
    rows = kept(tmp_path / "noise", lambda s: 3e8 + s % 7 * 1e5)
    found = findings(tmp_path / "noise", rows)[growth.RESIDENT]
    assert found.low <= 0 <= found.high
    assert "no growth shown" in found.text
    # Pages touched for the first time: growth of the first third only.
    rows = kept(tmp_path / "first", lambda s: 3e8 + min(s, 500) * 1e6)
    found = findings(tmp_path / "first", rows)[growth.RESIDENT]
    assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)
    assert ", from 763 to 763 MiB once the first third was over; at first 296;" in found.text


@pytest.mark.parametrize(("mib_per_h", "shown"), [(0.0, False), (7.2, True)])
def test_live_heap_is_told_from_garbage(tmp_path: Path, mib_per_h: float, shown: bool) -> None:
    """The old generation grows by 360 MiB an hour within a leg, most of it dead."""

    def of_leg(number: int) -> dict[str, Any]:
        # A cache that fills in the first legs is no growth.
        grown = round((number + 1) * 310 * mib_per_h * MIB / 3600)
        return {"live_bytes": 12 * MIB + min(number, 3) * MIB + grown}

    dying = {"old": lambda s: 1e6 + s % 310 * 360 * MIB / 3600}
    rows = kept(tmp_path, lambda s: 3e8, 16, of_leg, **dying)
    live_heap = findings(tmp_path, rows)[growth.LIVE]
    assert live_heap.value == pytest.approx(mib_per_h, abs=1e-2)
    assert (live_heap.low > 0) == shown
    assert live_heap.text.startswith(f"live heap: +{mib_per_h:.2f} MiB/h (95 % interval ")
    assert ("no growth shown" in live_heap.text) != shown
    assert "; at first 12;" in live_heap.text or shown


def test_what_lives_is_told_where_legs_count_and_are_enough(tmp_path: Path) -> None:
    rows = kept(tmp_path / "five", growing, live_bytes=12 * MIB)
    lost(rows, 1)
    assert "1 of 5 legs left out: 02-a" in findings(tmp_path / "five", rows)[growth.LIVE].text
    rows = kept(tmp_path / "two", growing, 2, live_bytes=12 * MIB)
    found = findings(tmp_path / "two", rows)[growth.LIVE]
    assert found.value is None
    assert found.text.startswith("live heap: its growth cannot be told, too few samples")
    # Where nobody tells what lives, nothing is said of it.
    assert growth.LIVE not in findings(tmp_path, kept(tmp_path, growing))


def test_bursts_are_no_growth_and_do_not_hide_it(tmp_path: Path) -> None:
    # A burst of a minute, of up to 300 MB, in every third minute, and growth of 36 MiB an hour.
    def bursting(at: float) -> float:
        return growing(at) + (at % 97 * 3e6 if at // 60 % 3 == 0 else 0)

    found = findings(tmp_path, kept(tmp_path, bursting))[growth.RESIDENT]
    assert found.value == pytest.approx(36, rel=0.1)
    assert 0 < found.low <= (found.high or 0) < 72


def test_invalid_and_unreadable_legs_are_left_out_and_said(tmp_path: Path) -> None:
    rows = kept(tmp_path, growing)
    lost(rows, 1)
    (tmp_path / "raw" / rows[2].trial / SERIES).unlink()
    found = findings(tmp_path, rows)[growth.RESIDENT]
    assert "2 of 5 legs left out: 02-a: invalid: toxics-touched; 03-a: " in found.text
    # Memory grew while these legs put load on the JVM, so that time counts.
    assert found.value == pytest.approx(36, rel=5e-3)
    assert "over 0.43 h of load" in found.text
    # Without a record that time is not known.
    lost(rows, 1, "damaged")
    (tmp_path / "raw" / rows[1].trial / "trial.json").unlink()
    found = findings(tmp_path, rows)[growth.RESIDENT]
    assert "02-a: invalid: damaged, and its load is not counted" in found.text
    assert "over 0.34 h of load" in found.text


def test_where_nobody_tells_which_jvm_it_was_a_leg_does_not_count(tmp_path: Path) -> None:
    rows = kept(tmp_path, growing)
    for one in rows:
        untold = record(plan(trial=one.trial), before=foreign(None))
        write_json(tmp_path / "raw" / one.trial / "trial.json", untold)
    found = findings(tmp_path, rows)[growth.RESIDENT]
    assert found.value is None
    assert "5 of 5 legs left out: 01-a: which JVM it ran on is not known" in found.text


def test_legs_of_another_jvm_are_left_out(tmp_path: Path) -> None:
    def of_leg(number: int) -> dict[str, Any]:
        # A new JVM after two legs; it begins at less.
        base, started = (9e8, 1) if number < 2 else (3e8, 2)
        return {"resident": lambda s: base, "started_ms": started}

    found = findings(tmp_path, kept(tmp_path, growing, of_leg=of_leg))[growth.RESIDENT]
    assert found.value == 0.0
    assert "2 of 5 legs left out: 2 legs ran on another JVM" in found.text


def test_an_interruption_on_the_same_jvm_is_said(tmp_path: Path) -> None:
    """Proven warm once more: whoever went on with the run put load on the JVM to do so."""

    def of_leg(number: int) -> dict[str, Any]:
        return {"warmth": Warmth(True, (WarmCycle(float(number // 3), 2.0, 500.0, 200.0, 0.0),))}

    found = findings(tmp_path, kept(tmp_path, growing, of_leg=of_leg))[growth.RESIDENT]
    assert found.value == pytest.approx(36, rel=5e-3)
    assert found.text.endswith(
        "over 0.43 h of load; interrupted once, and the load on this JVM meanwhile is not counted"
    )


def test_without_series_there_is_no_growth_to_tell(tmp_path: Path) -> None:
    found = findings(tmp_path, [row(plan(trial="01-a"), **invalid("x"))])[growth.HEAP]
    assert found.value is None
    assert "cannot be told" in found.text


def test_an_old_collection_in_the_time_is_not_missed(tmp_path: Path) -> None:
    def text(folder: Path, old_after: Callable[[int, float], float]) -> str:
        legs = kept(folder, lambda s: 3e8, of_leg=lambda n: {"old_after": partial(old_after, n)})
        return findings(folder, legs)[growth.HEAP].text

    assert "no leg collected" not in text(tmp_path / "within", lambda _, s: float(s > 700))
    # Between legs it is collected because the driver asks.
    assert "no leg collected" in text(tmp_path / "between", lambda number, _: float(number))


def pool(name: str, pool: str, *values: float) -> Series:
    return Series({"__name__": name, "job": "jvm", "pool": pool}, (1.0, 2.0), values)


G1 = (
    pool(AFTER, "G1 Eden Space", 0, 0),
    pool(AFTER, "G1 Survivor Space", 4, 5),
    pool(AFTER, "G1 Old Gen", 1, 1),
    pool(USED, "G1 Eden Space", 70, 80),
    pool(USED, "G1 Old Gen", 10, 20),
    pool(USED, "Metaspace", 7, 7),
)


@pytest.mark.parametrize(
    ("pools", "left"),
    [
        (G1, ((1.0, 14), (2.0, 25))),
        ((), ()),
        ((pool(AFTER, "Shenandoah", 4, 5),), ((1.0, 4.0), (2.0, 5.0))),
        ((pool(AFTER, "Survivor Space", 4, 5), pool(AFTER, "Tenured Gen", 4, 5)), ()),
    ],
    ids=["survivors and the old generation now", "no pool", "one pool", "pools that are half seen"],
)
def test_heap_after_collections(
    pools: tuple[Series, ...], left: tuple[tuple[float, float], ...]
) -> None:
    assert heap_after_collections(Observation((0.0, 3.0), pools)) == left


def test_parts_have_as_many_samples_each_and_their_least_value() -> None:
    # 10 samples each, and none is between 30 and 60.
    points = [(float(s), float(s * 2)) for s in (*range(30), *range(60, 130))]
    parts = growth.in_parts(points)
    assert [at for at, _ in parts] == [4.5 + s for s in (0, 10, 20, 60, 70, 80, 90, 100, 110, 120)]
    assert parts[1] == (14.5, 20.0)
    assert growth.in_parts([]) == ()
    assert growth.in_parts([(1.0, 1.0)]) == ((1.0, 1.0),)


@pytest.mark.parametrize("out", range(5))
def test_a_leg_that_is_left_out_costs_no_interval(tmp_path: Path, out: int) -> None:
    rows = kept(tmp_path, growing)
    lost(rows, out)
    found = findings(tmp_path, rows)[growth.RESIDENT]
    assert found.low is not None
    assert found.value == pytest.approx(36, rel=5e-3)
