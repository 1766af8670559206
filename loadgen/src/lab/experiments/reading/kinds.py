"""Settings as an Experiment of each kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from lab.experiments.reading import cases, rules, script
from lab.experiments.reading.load import Load, read_load
from lab.experiments.reading.settings import Head, Settings
from lab.model import (
    RESOURCES,
    Endurance,
    Experiment,
    Explain,
    Faults,
    Kind,
    Objective,
    Planted,
    Spike,
    Stress,
)

# The engine whose raw output tells every second of a run (lab.load.engines.oha).
EVERY_SECOND = "oha"
MAX_CONNECTIONS = 1_000_000
# Of an explanation: 6 pairs are the least that give an interval (lab.judge.intervals).
PAIRS, MAX_PAIRS = 6, 100
STEPS, MAX_STEPS = 4, 20
# The setting by which the user picks some of the cases.
PICKED = "case"
Found = tuple[Experiment, tuple[str, ...]]


def experiment(
    kind: str,
    settings: Settings,
    head: Head,
    servers: Sequence[str],
    file_limit: int,
    steps: Sequence[script.Step] = (),
    planted: Sequence[cases.Table] = (),
) -> Found:
    """The experiment, and notes of what was left out of it; `steps` are the script of one with
    faults, `planted` the cases of one with planted bottlenecks. Raises WordError."""
    if kind == "planted":
        return _planted(settings, head, servers, file_limit, planted)
    if kind == "faults":
        return _faults(settings, head, servers, file_limit, steps)
    make = {
        "loads": _loads,
        "stress": _stress,
        "spike": _spike,
        "endurance": _endurance,
        "explain": explanation,
    }[kind]
    return make(settings, head, servers, file_limit)


def _loads(settings: Settings, head: Head, servers: Sequence[str], file_limit: int) -> Found:
    load = read_load(settings, servers, file_limit)
    _has_concurrency(settings, load)
    arms = settings.each("repeat.arms", rules.name)
    given = settings.get("repeat.arms")
    if given is not None and not load.launches:
        raise given.refuse(f"{given.text} needs fresh JVMs; allowed: with launches of 1 or more")
    scale = _scale(settings)
    whole = _experiment(head, load, "loads", scale, _scaled(load.duration_s, scale), arms=arms)
    return whole, load.notes


def _stress(settings: Settings, head: Head, servers: Sequence[str], file_limit: int) -> Found:
    load = read_load(settings, servers, file_limit, ("open",))
    _only_one(settings, load, "routes", "modes", "engines")
    count = rules.number(1, MAX_CONNECTIONS)
    first, most = settings.needed("stress.first", count), settings.needed("stress.most", count)
    bound = settings.get("stress.most")
    notes = load.notes
    if bound is not None and first > min(most, load.most):
        raise bound.refuse(
            f"{most} is less than stress.first={first}"
            if first > most
            else f"{most}: this machine does not even hold stress.first={first}, only {load.held}"
        )
    if most > load.most:
        notes = (*notes, f"up to {load.most} of {most} connections: this machine holds {load.held}")
    stress = Stress(
        objective=Objective(
            p95_ms=settings.needed("stress.p95_ms", rules.decimal(0.001, 1e6)),
            error_share=settings.needed("stress.error_share", rules.decimal(0, 0.999)),
        ),
        first=first,
        step=settings.needed("stress.step", count),
        most=min(most, load.most),
        resolution=settings.needed("stress.resolution", count),
        fall=settings.needed("stress.fall", rules.decimal(0.001, 0.999)),
    )
    scale = _scale(settings)
    duration_s = _scaled(load.duration_s, scale)
    whole = _experiment(head, load, "stress", scale, duration_s, (first,), stress=stress)
    return whole, notes


def _spike(settings: Settings, head: Head, servers: Sequence[str], file_limit: int) -> Found:
    load = read_load(settings, servers, file_limit, ("open",))
    _has_concurrency(settings, load)
    _only_one(settings, load, "routes", "concurrency")
    _tells_every_second(settings, load)
    scale, own = _scale(settings), load.concurrencies[0]
    asked = settings.needed("spike.extra", rules.number(1, MAX_CONNECTIONS))
    extra, notes = min(asked, load.most - own), load.notes
    given = settings.get("spike.extra")
    if given is not None and extra < 1:
        raise given.refuse(f"{asked} beside {own}: more than this machine holds, {load.held}")
    if extra < asked:
        notes = (
            *notes,
            f"spikes to {own + extra} instead of {own + asked} connections: this machine holds "
            f"{load.held}",
        )
    rate = settings.one("spike.extra_rate", rules.rate, None)
    spike = Spike(
        extra=extra,
        extra_rps=rate if rate is None else max(1, rate * extra // asked),
        calm_s=_scaled(settings.needed("spike.calm", rules.seconds(1)), scale),
        peak_s=_scaled(settings.needed("spike.peak", rules.seconds(1)), scale),
        repeats=settings.needed("spike.repeats", rules.number(1, 100)),
        tolerance=settings.needed("spike.tolerance", rules.decimal(0.001, 100)),
        steady_s=_scaled(settings.needed("spike.steady", rules.seconds(1)), scale),
    )
    calm = settings.get("spike.calm")
    if calm is not None and spike.steady_s > spike.calm_s:
        raise calm.refuse(f"{calm.text} is shorter than spike.steady, so nothing could recover")
    whole = _experiment(
        head, load, "spike", scale, spike.total_s, engines=(EVERY_SECOND,), spike=spike
    )
    return whole, notes


def _endurance(settings: Settings, head: Head, servers: Sequence[str], file_limit: int) -> Found:
    load = read_load(settings, servers, file_limit, ("open",))
    _has_concurrency(settings, load)
    _only_one(settings, load, "routes", "concurrency", "modes", "engines")
    scale = _scale(settings)
    duration_s = _scaled(load.duration_s, scale)
    leg_s = _scaled(settings.needed("endurance.leg", rules.seconds(1)), scale)
    legs = Endurance(leg_s=min(leg_s, duration_s))
    return _experiment(head, load, "endurance", scale, duration_s, endurance=legs), load.notes


def explanation(settings: Settings, head: Head, servers: Sequence[str], file_limit: int) -> Found:
    """The experiment of kind explain. Raises WordError."""
    load = read_load(settings, servers, file_limit, ("closed",))
    _has_concurrency(settings, load)
    _only_one(settings, load, "routes", "concurrency", "modes", "engines")
    scale = _scale(settings)
    explain = Explain(
        pairs=settings.one("explain.pairs", rules.number(1, MAX_PAIRS), PAIRS),
        steps=settings.one("explain.steps", rules.number(1, MAX_STEPS), STEPS),
        suspect=settings.one("explain.suspect", rules.one_of(RESOURCES), None),
    )
    duration_s = _scaled(load.duration_s, scale)
    return _experiment(head, load, "explain", scale, duration_s, explain=explain), load.notes


def _faults(
    settings: Settings,
    head: Head,
    servers: Sequence[str],
    file_limit: int,
    steps: Sequence[script.Step],
) -> Found:
    load = read_load(settings, servers, file_limit, ("open",))
    _has_concurrency(settings, load)
    _only_one(settings, load, "routes", "concurrency")
    _tells_every_second(settings, load)
    scale = _scale(settings)
    duration_s = _scaled(load.duration_s, scale)
    steady_s = _scaled(settings.needed("faults.steady", rules.seconds(1)), scale)
    faults = Faults(
        steps=script.checked(steps, lambda at_s: _scaled(at_s, scale), duration_s, steady_s),
        tolerance=settings.needed("faults.tolerance", rules.decimal(0.001, 100)),
        steady_s=steady_s,
    )
    whole = _experiment(
        head, load, "faults", scale, duration_s, engines=(EVERY_SECOND,), faults=faults
    )
    return whole, load.notes


def _planted(
    settings: Settings,
    head: Head,
    servers: Sequence[str],
    file_limit: int,
    tables: Sequence[cases.Table],
) -> Found:
    load = read_load(settings, servers, file_limit, ("closed",))
    modes = settings.get("load.modes")
    if modes is not None and load.modes != ("closed",):
        raise modes.refuse(f"{modes.text} is not allowed; allowed: closed in this kind")
    every, notes = cases.checked(tables, servers, file_limit)
    picked = settings.each(PICKED, rules.one_of([case.name for case in every]))
    chosen = tuple(case for case in every if not picked or case.name in picked)
    scale = _scale(settings)
    # A case's server, route and connections are its own: those of the experiment follow.
    load = dataclasses.replace(
        load,
        servers=tuple(dict.fromkeys(case.server for case in chosen)),
        routes=tuple(dict.fromkeys(case.route for case in chosen)),
    )
    whole = _experiment(
        head,
        load,
        "planted",
        scale,
        _scaled(load.duration_s, scale),
        tuple(dict.fromkeys(case.concurrency for case in chosen)),
        planted=Planted(chosen),
    )
    return whole, notes


def _tells_every_second(settings: Settings, load: Load) -> None:
    engines = settings.get("load.engines")
    if engines is not None and load.engines != (EVERY_SECOND,):
        raise engines.refuse(
            f"{engines.text} does not tell every second, which recovery is read from; "
            f"allowed: {EVERY_SECOND}"
        )


def _experiment(
    head: Head,
    load: Load,
    kind: Kind,
    scale: float,
    duration_s: int,
    concurrencies: tuple[int, ...] | None = None,
    engines: tuple[str, ...] | None = None,
    **own: Any,
) -> Experiment:
    return Experiment(
        name=head.name,
        servers=load.servers,
        routes=load.routes,
        concurrencies=concurrencies or load.concurrencies,
        modes=load.modes,
        rate_rps=load.rate_rps,
        duration_s=duration_s,
        warmup_s=load.warmup_s,
        engines=engines or load.engines,
        words=head.words,
        question=head.question,
        hypothesis=head.hypothesis,
        kind=kind,
        launches=load.launches,
        scale=scale,
        **own,
    )


def _has_concurrency(settings: Settings, load: Load) -> None:
    if not load.concurrencies:
        raise settings.missing("load.concurrency")


def _only_one(settings: Settings, load: Load, *names: str) -> None:
    values = {
        "routes": load.routes,
        "concurrency": load.concurrencies,
        "modes": load.modes,
        "engines": load.engines,
    }
    for name in names:
        given = settings.get(f"load.{name}")
        if given is not None and len(values[name]) > 1:
            raise given.refuse(f"{given.text} is more than one; allowed: one in this kind")


def _scale(settings: Settings) -> float:
    return settings.one("scale", rules.decimal(0.001, 10), 1.0)


def _scaled(seconds: int, scale: float) -> int:
    """A duration in whole seconds, at least one."""
    return max(1, round(seconds * scale))
