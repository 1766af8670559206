"""The resource that limited a trial: how each resource did in its window, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import Literal

from lab.model.own_lever import OWN_VARIABLE

# Every resource that a verdict can name, in the words of rows, reports and SUSPECT=.
RESOURCES = (
    "worker pool",
    "carrier threads",
    "pinned carriers",
    "event loop",
    "front",
    "lock",
    "server CPU",
    "garbage collection",
    "accept queue",
    "file descriptors",
    "ports",
    "downstream connections",
    "downstream timeout",
    "network",
    "connection set-up",
    "Toxiproxy",
    "downstream",
    "host CPU",
    "connections of the load",
    "generator",
)
# Verdicts that name no resource.
NONE = "none"
UNKNOWN = "unknown"
# The bound that an open load has by itself.
OFFERED = "offered load"
# How strong the evidence for a verdict is, in the words of rows and reports; empty for UNKNOWN.
Strength = Literal["strong", "weak", ""]
STRONG: Strength = "strong"
WEAK: Strength = "weak"
# Scores rank suspects by rules that were set by hand. They are no probabilities, and no report
# prints them. From the first on a suspect is full and something waits for it (strong), from the
# second on it is near its limit or the cause is inferred (weak).
STRONG_FROM = 0.8
WEAK_FROM = 0.55


@dataclass(frozen=True, slots=True)
class Condition:
    """How the lab differs from its defaults during a trial, on purpose.

    * `knobs`: settings of the server's management port by name (pool_size=400), changed live
    * `toxics`: words of `make toxic`, one mapping per toxic, in force during the trial
    * `host`: settings of .env (SERVER_CPUS, NOFILE …) that the trial's server container is
      given, or of the user's own service (lab.model.own_lever); only the host can do that
      (lab.system.host_changes)
    * `generator_cpus`: a CPU limit of the driver's own container
    * `spin`: the share of the machine's CPUs that a spinner takes away (lab.system.spinner)
    * `connections`: how many the load has instead of the experiment's; its rate stays
    """

    knobs: Mapping[str, int] = MappingProxyType({})
    toxics: tuple[Mapping[str, str], ...] = ()
    host: Mapping[str, str] = MappingProxyType({})
    generator_cpus: float | None = None
    spin: float | None = None
    connections: int | None = None

    @property
    def text(self) -> str:
        """For people; "as it is" where nothing differs."""
        parts = [f"{name}={value}" for name, value in self.knobs.items()]
        parts += [" ".join(f"{k}={v}" for k, v in words.items()) for words in self.toxics]
        parts += [f"{n.removeprefix(OWN_VARIABLE)}={value}" for n, value in self.host.items()]
        if self.generator_cpus is not None:
            parts.append(f"generator CPUs={self.generator_cpus:g}")
        if self.spin is not None:
            parts.append(f"{self.spin:.0%} of the CPUs taken away")
        if self.connections is not None:
            parts.append(f"{self.connections} connections")
        return ", ".join(parts) or "as it is"


AS_IT_IS = Condition()


# The word for what follows from measurements at another load than the one that it is said of.
EXTRAPOLATED = "extrapolated"


@dataclass(frozen=True, slots=True)
class Line:
    """The CPU time that a part uses at a rate λ: a + b·λ CPU seconds per second. Under more load
    wake-ups are batched, so the cost of a request falls with λ. It is fitted to that many `rates`,
    from `low` on. 1: only b is known, and a counts as 0."""

    b: float
    a: float = 0.0
    rates: int = 1
    low: float = 0.0

    def each_s(self, rps: float) -> float:
        """CPU seconds per request at this rate; below `low` those at `low`."""
        return self.a / max(rps, self.low) + self.b

    def rps(self, cpus: float) -> float:
        """The rate at which that many CPUs are in use; 0 or less: none is."""
        return (cpus - self.a) / self.b


@dataclass(frozen=True, slots=True)
class Demand:
    """The CPU time of the server's process, and of the whole machine, which generator, proxy and
    downstream share: of the run's trials of the load's kind, where these have several rates, else
    of a light load on a warm JVM, without what the idle lab uses. None if unknown.

    `r0_ms` is the R0 of a foreign service: the mean of a single connection, which waits for no
    other. It is None where nobody could tell it, and `r0_problem` says why. `think_ms` is the
    generator's think time of that connection, None where its engine does not tell it. `light_rps`
    is the answers per second of the light load on it. All are None for the lab's servers, whose R0
    follows from what they do."""

    connections: int
    requests: int
    server: Line | None
    host: Line | None
    r0_ms: float | None = None
    light_rps: float | None = None
    r0_problem: str | None = None
    think_ms: float | None = None

    @property
    def cycle_ms(self) -> float | None:
        """R0 + Z: how long a connection of a closed load takes for a request at least."""
        return None if self.r0_ms is None else self.r0_ms + (self.think_ms or 0.0)


@dataclass(frozen=True, slots=True)
class Bound:
    """X ≤ `rps` because of `resource`, by `formula`. `estimate`: it comes from a measured service
    demand, which may fall under load, so a faster run is not invalid."""

    resource: str
    rps: float
    formula: str
    estimate: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """One number of a verdict, and the PromQL (or the file) it came from."""

    what: str
    value: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class Standing:
    """How one resource did in the window (utilisation, saturation, errors: B. Gregg, "Thinking
    Methodically about Performance", ACM Queue 10(12), 2012).

    `utilisation` is 0..1 of its capacity. `saturation` is how much waited for it, in the unit
    `waiting`. `errors` is how much failed for want of it. None: nobody can tell. `score` is 0..1
    and orders the suspects of one trial, no more. `sentence` is for people.
    """

    resource: str
    _: KW_ONLY
    utilisation: float | None = None
    saturation: float | None = None
    waiting: str = ""
    errors: float | None = None
    score: float
    sentence: str
    evidence: tuple[Evidence, ...] = ()

    def __post_init__(self) -> None:
        if self.resource not in RESOURCES:
            raise ValueError(f"{self.resource} is not a resource")
        if not 0 <= self.score <= 1:
            raise ValueError(f"a score is from 0 to 1: {self.score}")

    @property
    def figures(self) -> str:
        """The first of what its sentence says: how full it was."""
        return self.sentence.partition(": ")[2].split("; ")[0].split(", ")[0]

    @property
    def strength(self) -> Strength:
        """How strong the evidence against this resource is by itself; empty for no suspect."""
        if self.score >= STRONG_FROM:
            return STRONG
        return WEAK if self.score >= WEAK_FROM else ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What limited a trial: one of RESOURCES, NONE (the load itself is its bound) or UNKNOWN.

    `strength` is how strong the evidence is, empty for UNKNOWN. `ranked` has every resource with
    evidence, the most suspect first. `missing` names the missing evidence.
    """

    bottleneck: str
    strength: Strength
    sentence: str
    ranked: tuple[Standing, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def figures(self) -> str:
        """How full the resource that is named was; empty where no resource is named."""
        return next((one.figures for one in self.ranked if one.resource == self.bottleneck), "")

    def __post_init__(self) -> None:
        if self.bottleneck not in (*RESOURCES, NONE, UNKNOWN):
            raise ValueError(f"{self.bottleneck} is not a bottleneck")
        if (self.strength == "") != (self.bottleneck == UNKNOWN):
            raise ValueError(f"{self.bottleneck} with the strength {self.strength!r}")


def three(value: float) -> str:
    """A value for people: in three digits, or the whole number where it has more."""
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:.3g}"


def strength_text(strength: str) -> str:
    """The strength of a verdict's evidence for people; empty for none. Every report takes it from
    here, so a measured share can be stated here beside it: how often a verdict on this resource
    with this strength named what was planted (experiments/truth.toml)."""
    return f"{strength} evidence" if strength else ""
