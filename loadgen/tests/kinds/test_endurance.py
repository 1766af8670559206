"""Growth over legs, on memory whose growth was planted."""

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lab.errors import WordError
from lab.judge.metrics import HEAP_AFTER, heap_after_collections
from lab.kinds.endurance import LIVE_HEAP, OF_SERVER, Endurance, design, findings, in_parts
from lab.kinds.kind import Outcome
from lab.model import Experiment, Grown, Observation, Row, Series, TrialPlan, WarmCycle, Warmth
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
LIVE = LIVE_HEAP.name
HEAP, RESIDENT, FILES, THREADS = (figure.name for figure in OF_SERVER)


def enduring(**changes: object) -> Experiment:
    whole = {"kind": "endurance", "own": Endurance(LEG_S), "modes": ("open",)}
    return experiment(**{**whole, "duration_s": 1500, **changes})


def plans(**changes: object) -> list[TrialPlan]:
    return all_of(design(planner(enduring(**changes))))


def test_servers_take_turns_leg_by_leg_on_one_jvm_in_a_launch() -> None:
    legs = plans()
    assert [leg.server for leg in legs] == ["a", "b"] * 5
    assert {leg.duration_s for leg in legs} == {LEG_S}
    assert ({leg.offered_rps for leg in legs}, {leg.asks_live for leg in legs}) == ({148}, {True})
    assert legs[0].trial == "01-a-open-c100"
    legs = plans(launches=2)
    assert [leg.launch for leg in legs] == [1] * 10 + [2] * 10
    assert [leg.server for leg in legs[10:12]] == ["b", "a"]
    # Closed legs have no rate, and an open leg needs one.
    closed = plans(modes=("closed",), routes=("/compute",))
    assert {leg.offered_rps for leg in closed} == {None}
    with pytest.raises(WordError, match="RATE=auto"):
        plans(routes=("/compute",))


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
    legs = plans(servers=("a",), duration_s=duration_s, own=Endurance(leg_s))
    assert [leg.duration_s for leg in legs] == lengths


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
    before = copy.replace(before, identity=copy.replace(before.identity, start_time_ms=started_ms))
    told = {"window_offset_s": 10.0, "run_s": 310.0, "live_heap_bytes": live_bytes}
    told |= {"warmth": warmth or Warmth(True, ()), "before": before}
    write_json(raw / "trial.json", record(plan(trial=one.trial, duration_s=LEG_S), **told))
    # Other servers' legs lie between: the wall clock says nothing of load.
    opens = 1_000_000.0 + number * 2000
    loaded = {opens + s: number * 310 + 10 + s for s in range(-5, LEG_S + 6)}
    found = [
        line("process_resident_memory_bytes", {at: resident(x) for at, x in loaded.items()}),
        line(HEAP_AFTER, dict.fromkeys(loaded, 0.0), pool="G1 Eden Space"),
        line(HEAP_AFTER, dict.fromkeys(loaded, 2e6), pool="G1 Survivor Space"),
        line(HEAP_AFTER, {at: old_after(x) for at, x in loaded.items()}, pool="G1 Old Gen"),
        line(USED, {at: x * 1e6 for at, x in loaded.items()}, pool="G1 Eden Space"),
        line(USED, {at: old(x) for at, x in loaded.items()}, pool="G1 Old Gen"),
        # One file more in each minute.
        line("process_open_fds", {at: 100.0 + x // 60 for at, x in loaded.items()}),
        line("jvm_threads_current", dict.fromkeys(loaded, 30.0)),
    ]
    series.write(raw, (opens, opens + LEG_S), "2.53", [], found[: 8 if watched else 6])


def growing(at: float) -> float:
    """36 MiB an hour."""
    return 3e8 + at * 36 * MIB / 3600


def flat(at: float) -> float:
    return 3e8


def kept(
    run_dir: Path,
    resident: Callable[[float], float] = growing,
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
    rows[at] = copy.replace(rows[at], **invalid(reason))


def grown(run_dir: Path, rows: list[Row]) -> dict[str, Grown]:
    found = findings(Outcome(enduring(servers=("a",)), rows, run_dir))
    return {finding.name: finding for finding in found if isinstance(finding, Grown)}


def codes(of: Grown) -> dict[str, list[str]]:
    """Why each leg was left out."""
    return {trial: [why.code for why in problems] for trial, problems in of.legs.left_out.items()}


def test_planted_growth_is_found_per_hour_of_load(tmp_path: Path) -> None:
    # 36 MiB an hour resident, and 3.6 MiB an hour of old objects.
    found = grown(tmp_path, kept(tmp_path, old=lambda s: 1e6 + s * MIB / 1000, watched=True))
    # Where nothing says what lives, there is no finding of it.
    assert list(found) == [HEAP, RESIDENT, FILES, THREADS]
    resident, heap = found[RESIDENT], found[HEAP]
    assert (resident.value, resident.unit) == (pytest.approx(36, rel=5e-3), "MiB/h")
    assert resident.low <= resident.value <= (resident.high or 0)
    # 286 MiB, and 36 MiB/h × 0.14 and 0.4 h.
    assert resident.levels == pytest.approx((286, 291, 301), abs=0.5)
    assert (resident.legs.load_s, resident.legs.legs, resident.legs.counted) == (1550, 5, 5)
    assert heap.value == pytest.approx(3.6, rel=1e-3)
    assert not heap.legs.old_collected
    assert found[FILES].value == pytest.approx(60, rel=0.1)
    assert found[FILES].low > 0
    assert found[THREADS].value == 0.0


@pytest.mark.parametrize(
    ("resident", "low", "high", "levels"),
    [
        (lambda s: 3e8 + s % 7 * 1e5, -1.0, 1.0, None),
        # Pages touched for the first time: growth of the first third only.
        (lambda s: 3e8 + min(s, 500) * 1e6, 0.0, 0.0, (296, 763, 763)),
        # A burst of a minute, of up to 300 MB, in every third minute, and growth of 36 MiB an hour.
        (lambda s: growing(s) + (s % 97 * 3e6 if s // 60 % 3 == 0 else 0), 0.1, 72.0, None),
    ],
    ids=["noise", "settling", "bursts"],
)
def test_noise_and_bursts_are_no_growth_and_do_not_hide_it(
    tmp_path: Path,
    resident: Callable[[float], float],
    low: float,
    high: float,
    levels: tuple[float, ...] | None,
) -> None:
    found = grown(tmp_path, kept(tmp_path, resident))[RESIDENT]
    assert low <= found.low <= found.value <= found.high <= high
    assert levels is None or found.levels == pytest.approx(levels, abs=0.5)


@pytest.mark.parametrize(("mib_per_h", "shown"), [(0.0, False), (7.2, True)])
def test_live_heap_is_told_from_garbage(tmp_path: Path, mib_per_h: float, shown: bool) -> None:
    """The old generation grows by 360 MiB an hour within a leg, most of it dead."""

    def of_leg(number: int) -> dict[str, Any]:
        # A cache that fills in the first legs is no growth.
        more = round((number + 1) * 310 * mib_per_h * MIB / 3600)
        return {"live_bytes": 12 * MIB + min(number, 3) * MIB + more}

    dying = {"old": lambda s: 1e6 + s % 310 * 360 * MIB / 3600}
    live_heap = grown(tmp_path, kept(tmp_path, flat, 16, of_leg, **dying))[LIVE]
    assert live_heap.value == pytest.approx(mib_per_h, abs=1e-2)
    assert (live_heap.low > 0) == shown
    # Of two legs nothing is found.
    few = grown(tmp_path / "two", kept(tmp_path / "two", count=2, live_bytes=12 * MIB))[LIVE]
    assert (few.value, few.levels) == (None, None)


def test_legs_that_do_not_count_are_left_out_with_their_reasons(tmp_path: Path) -> None:
    rows = kept(tmp_path)
    lost(rows, 1)
    (tmp_path / "raw" / rows[2].trial / SERIES).unlink()
    found = grown(tmp_path, rows)[RESIDENT]
    assert codes(found) == {"02-a": ["toxics-touched"], "03-a": ["damaged"]}
    # Memory grew while these legs put load on the JVM, so that time counts.
    assert found.value == pytest.approx(36, rel=5e-3)
    assert (found.legs.counted, found.legs.load_s) == (3, 1550)
    # Without a record that time is not known.
    lost(rows, 1, "damaged")
    (tmp_path / "raw" / rows[1].trial / "trial.json").unlink()
    found = grown(tmp_path, rows)[RESIDENT]
    assert codes(found)["02-a"] == ["damaged", "load-not-counted"]
    assert found.legs.load_s == 1240


@pytest.mark.parametrize("out", range(5))
def test_a_leg_that_is_left_out_costs_no_interval(tmp_path: Path, out: int) -> None:
    rows = kept(tmp_path)
    lost(rows, out)
    found = grown(tmp_path, rows)[RESIDENT]
    assert found.low is not None
    assert found.value == pytest.approx(36, rel=5e-3)


def test_where_the_jvm_is_unknown_a_leg_does_not_count(tmp_path: Path) -> None:
    rows = kept(tmp_path)
    for one in rows:
        untold = record(plan(trial=one.trial), before=foreign(None))
        write_json(tmp_path / "raw" / one.trial / "trial.json", untold)
    found = grown(tmp_path, rows)[RESIDENT]
    assert (found.value, found.legs.counted) == (None, 0)
    assert codes(found) == {one.trial: ["jvm-unknown"] for one in rows}
    # Nor does one without series.
    found = grown(tmp_path, [row(plan(trial="09-a"), **invalid("x"))])[HEAP]
    assert (found.value, found.legs.legs, found.legs.counted) == (None, 1, 0)


def test_legs_of_another_jvm_are_left_out(tmp_path: Path) -> None:
    def of_leg(number: int) -> dict[str, Any]:
        # A new JVM after two legs; it begins at less.
        base, started = (9e8, 1) if number < 2 else (3e8, 2)
        return {"resident": lambda s: base, "started_ms": started}

    found = grown(tmp_path, kept(tmp_path, of_leg=of_leg))[RESIDENT]
    assert (found.value, found.legs.on_other_jvms, found.legs.counted) == (0.0, 2, 3)


def test_an_interruption_on_the_same_jvm_is_counted(tmp_path: Path) -> None:
    """Proven warm once more: whoever went on with the run put load on the JVM to do so."""

    def of_leg(number: int) -> dict[str, Any]:
        return {"warmth": Warmth(True, (WarmCycle(float(number // 3), 2.0, 500.0, 200.0, 0.0),))}

    found = grown(tmp_path, kept(tmp_path, of_leg=of_leg))[RESIDENT]
    assert (found.legs.interruptions, found.legs.counted) == (1, 5)


def test_an_old_collection_in_the_time_is_not_missed(tmp_path: Path) -> None:
    def collected(folder: Path, old_after: Callable[[int, float], float]) -> bool:
        legs = kept(folder, flat, of_leg=lambda n: {"old_after": partial(old_after, n)})
        return grown(folder, legs)[HEAP].legs.old_collected

    assert collected(tmp_path / "within", lambda _, s: float(s > 700))
    # Between legs it is collected because the driver asks.
    assert not collected(tmp_path / "between", lambda number, _: float(number))


def test_parts_have_as_many_samples_each_and_their_least_value() -> None:
    # 10 samples each, and none is between 30 and 60.
    points = [(float(s), float(s * 2)) for s in (*range(30), *range(60, 130))]
    parts = in_parts(points)
    assert [at for at, _ in parts] == [4.5 + s for s in (0, 10, 20, 60, 70, 80, 90, 100, 110, 120)]
    assert parts[1] == (14.5, 20.0)
    assert (in_parts([]), in_parts([(1.0, 1.0)])) == ((), ((1.0, 1.0),))


def pool(name: str, pool: str, *values: float) -> Series:
    return Series({"__name__": name, "job": "jvm", "pool": pool}, (1.0, 2.0), values)


G1 = (
    pool(HEAP_AFTER, "G1 Eden Space", 0, 0), pool(HEAP_AFTER, "G1 Survivor Space", 4, 5),
    pool(HEAP_AFTER, "G1 Old Gen", 1, 1), pool(USED, "G1 Eden Space", 70, 80),
    pool(USED, "G1 Old Gen", 10, 20), pool(USED, "Metaspace", 7, 7),
)  # fmt: skip


@pytest.mark.parametrize(
    ("pools", "left"),
    [
        (G1, ((1.0, 14), (2.0, 25))),
        ((), ()),
        ((pool(HEAP_AFTER, "Shenandoah", 4, 5),), ((1.0, 4.0), (2.0, 5.0))),
        ((pool(HEAP_AFTER, "Survivor Space", 4, 5), pool(HEAP_AFTER, "Tenured Gen", 4, 5)), ()),
    ],
    ids=["survivors and the old generation now", "no pool", "one pool", "pools that are half seen"],
)
def test_heap_after_collections(
    pools: tuple[Series, ...], left: tuple[tuple[float, float], ...]
) -> None:
    assert heap_after_collections(Observation((0.0, 3.0), pools)) == left
