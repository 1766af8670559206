"""What is to be measured: an experiment, and one trial of it as planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from lab.model.verdict import AS_IT_IS, NONE, RESOURCES, Condition

if TYPE_CHECKING:
    Json: TypeAlias = (
        "bool | int | float | str | list[Json] | tuple[Json, ...] | Mapping[str, Json] | None"
    )
else:
    Json = Any  # Decoding (lab.store.records) takes such a value as it is.
Mode = Literal["open", "closed"]
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class Objective:
    """A service level objective (SLO): what a load must keep to count as held.

    `p95_ms` is of the corrected latency in an open load, of the raw one in a closed load;
    `error_share` is of HTTP errors, socket errors and timeouts among all that ended.
    """

    p95_ms: float
    error_share: float

    def __post_init__(self) -> None:
        if self.p95_ms <= 0 or not 0 <= self.error_share < 1:
            raise ValueError("p95_ms is above 0, error_share from 0 to below 1")


@dataclass(frozen=True, slots=True)
class Stress:
    """The search for a breaking point: `first`, + `step`, … up to `most` connections, then
    bisection until the last held and the first broken load differ by at most `resolution`
    connections. A load is broken where the objective fails, or where throughput falls below
    the best so far by more than `fall` (a share)."""

    objective: Objective
    first: int
    step: int
    most: int
    resolution: int
    fall: float

    def __post_init__(self) -> None:
        if not 1 <= self.first <= self.most or self.step < 1 or self.resolution < 1:
            raise ValueError("1 <= first <= most, and step and resolution start at 1")
        if not 0 < self.fall < 1:
            raise ValueError("fall is a share between 0 and 1")


@dataclass(frozen=True, slots=True)
class Spike:
    """Connections beside the trial's own: `extra` of them for `peak_s`, `repeats` times, each
    with `calm_s` before it and `calm_s` after the last. Recovered: `tolerance` (a share)
    around the p95 of the calm before the first spike, `steady_s` seconds on end."""

    extra: int
    extra_rps: int | None
    calm_s: int
    peak_s: int
    repeats: int
    tolerance: float
    steady_s: int

    def __post_init__(self) -> None:
        if min(self.extra, self.calm_s, self.peak_s, self.repeats, self.steady_s) < 1:
            raise ValueError("extra, calm_s, peak_s, repeats and steady_s start at 1")
        if self.tolerance <= 0 or (self.extra_rps is not None and self.extra_rps < 1):
            raise ValueError("tolerance is above 0, a rate starts at 1")

    @property
    def total_s(self) -> int:
        """How long the trial's own load lasts."""
        return self.calm_s + self.repeats * (self.peak_s + self.calm_s)


@dataclass(frozen=True, slots=True)
class Endurance:
    """A long constant load, cut into `leg_s` seconds: each leg is a trial of its own on the
    same JVM, so that an interruption loses one leg. Growth is per hour, over all legs."""

    leg_s: int

    def __post_init__(self) -> None:
        if self.leg_s < 1:
            raise ValueError("leg_s starts at 1")


@dataclass(frozen=True, slots=True)
class ToxicStep:
    """A change of the toxics, `at_s` seconds after the measured window opens; `words` are those
    of `make toxic`."""

    at_s: int
    words: Mapping[str, str]

    def __post_init__(self) -> None:
        if self.at_s < 1 or not self.words:
            raise ValueError("a step of a script has words, and at_s starts at 1")

    @property
    def text(self) -> str:
        """For people."""
        return " ".join(f"{word}={value}" for word, value in self.words.items())


@dataclass(frozen=True, slots=True)
class Faults:
    """Toxics that come and go while a load runs. Recovered: `tolerance` (a share) around the
    p95 of the calm before the first, `steady_s` seconds on end."""

    steps: tuple[ToxicStep, ...]
    tolerance: float
    steady_s: int

    def __post_init__(self) -> None:
        if not self.steps or self.tolerance <= 0 or self.steady_s < 1:
            raise ValueError("there are steps, tolerance is above 0, and steady_s starts at 1")
        if any(b.at_s < a.at_s for a, b in pairwise(self.steps)):
            raise ValueError("steps are in the order of time")


@dataclass(frozen=True, slots=True)
class Case:
    """A bottleneck that is planted: the trial is made under `condition`, and its verdict must be
    one of `expected` (RESOURCES, NONE). `peak_extra` connections are opened at once in the
    middle of the window (0: none)."""

    name: str
    server: str
    route: str
    concurrency: int
    expected: tuple[str, ...]
    condition: Condition = AS_IT_IS
    peak_extra: int = 0

    def __post_init__(self) -> None:
        if not self.expected or set(self.expected) - {*RESOURCES, NONE}:
            raise ValueError(f"expected are resources or {NONE}: {self.expected}")
        if self.concurrency < 1 or self.peak_extra < 0:
            raise ValueError("concurrency starts at 1, peak_extra at 0")


@dataclass(frozen=True, slots=True)
class Planted:
    """Bottlenecks planted one after the other, to see whether the verdict names them."""

    cases: tuple[Case, ...]

    def __post_init__(self) -> None:
        names = [case.name for case in self.cases]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"cases have names, each once: {names}")


@dataclass(frozen=True, slots=True)
class Explain:
    """A verdict proven by intervention: the named resource is changed by a step, `pairs` trials
    with and without it in turn, then lifted, and the next named; at most `steps` resources per
    server. `suspect`: the resource to try first instead of the verdict's own."""

    pairs: int
    steps: int
    suspect: str | None = None

    def __post_init__(self) -> None:
        if self.pairs < 1 or self.steps < 1:
            raise ValueError("pairs and steps start at 1")
        if self.suspect is not None and self.suspect not in RESOURCES:
            raise ValueError(f"{self.suspect} is not a resource")


Kind = Literal["loads", "stress", "spike", "endurance", "faults", "planted", "explain"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Experiment:
    """What to measure, and why.

    * kind "loads": every combination of route, concurrency, mode, engine and server is a cell
      and one trial per launch; "stress", "spike",
      "endurance", "faults", "planted" and
      "explain": see those classes
    * `rate_rps` None means auto: a share of the predicted bound, the same for every server
    * `warmup_s` None means what the engine needs; `engines` empty means the one that is here
    * `launches` 0: the JVMs that run; n: that many fresh JVMs per server, interleaved
    * `arms`: names under which every server is measured as if it were several (A/A)
    * `target`: scheme, host and port of a service that is not the lab's, which is then the only
      server; None: servers of the lab
    * `scale`: what the durations of the file were multiplied by; other than 1 is a quick look
    * `words` are kept as the user gave them
    """

    name: str
    servers: tuple[str, ...]
    routes: tuple[str, ...]
    concurrencies: tuple[int, ...]
    modes: tuple[Mode, ...]
    rate_rps: int | None
    duration_s: int
    warmup_s: int | None
    engines: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    question: str = ""
    hypothesis: str = ""
    kind: Kind = "loads"
    launches: int = 0
    arms: tuple[str, ...] = ()
    scale: float = 1.0
    stress: Stress | None = None
    spike: Spike | None = None
    endurance: Endurance | None = None
    faults: Faults | None = None
    planted: Planted | None = None
    explain: Explain | None = None
    target: str | None = None

    def __post_init__(self) -> None:
        for name in ("servers", "routes", "concurrencies", "modes"):
            values = getattr(self, name)
            if not values or len(set(values)) != len(values):
                raise ValueError(f"{name} must be given, each once: {values}")
        for name in ("engines", "arms"):
            values = getattr(self, name)
            if len(set(values)) != len(values):
                raise ValueError(f"{name} must be given once each: {values}")
        if min(self.concurrencies) < 1 or self.duration_s < 1:
            raise ValueError("concurrency and duration start at 1")
        if self.launches < 0 or (self.arms and not self.launches):
            raise ValueError("launches start at 0, and arms need fresh JVMs")
        if self.scale <= 0:
            raise ValueError("scale is above 0")
        if self.target is not None and (self.kind != "loads" or self.launches):
            raise ValueError("a target is of kind loads, and its JVM is not the lab's to restart")
        for kind in KINDS[1:]:
            if (getattr(self, kind) is not None) != (self.kind == kind):
                raise ValueError(f"kind {self.kind} with {kind}={getattr(self, kind)}")


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """One trial as it will be run: one server, one load, one engine.

    open: `offered_rps` requests per second in all. closed: `offered_rps` is None, every
    connection sends again as soon as it is answered. `launch` counts fresh JVMs from 1; 0 is
    a JVM that ran already. `spike` is load beside the one described here; `script` changes the
    toxics while it runs; `condition` is how the lab was changed for it.
    """

    trial: str
    server: str
    url: str
    route: str
    engine: str
    mode: Mode
    concurrency: int
    offered_rps: int | None
    predicted_rps: float | None
    duration_s: int
    warmup_s: int | None
    cores: int
    launch: int = 0
    arm: str | None = None
    spike: Spike | None = None
    script: tuple[ToxicStep, ...] = ()
    condition: Condition = AS_IT_IS

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode is one of {', '.join(MODES)}, not {self.mode}")
        if (self.mode == "open") != (self.offered_rps is not None):
            raise ValueError("an open trial offers a rate, a closed one does not")
        if self.concurrency < 1 or self.duration_s < 1 or self.cores < 1:
            raise ValueError("concurrency, duration and cores start at 1")
