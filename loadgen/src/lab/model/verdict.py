"""The resource that limited a trial: how each resource did in its window, and the verdict."""

from collections.abc import Mapping
from typing import Literal

from lab.model.own_lever import OWN_VARIABLE
from lab.model.record import Record

# Verdicts that name no resource.
NONE = "none"
UNKNOWN = "unknown"
# The bound that an open load has by itself.
OFFERED = "offered load"
# How strong the evidence for a verdict is, in the words of rows and reports; empty for UNKNOWN.
Strength = Literal["strong", "weak", ""]
STRONG: Strength = "strong"
WEAK: Strength = "weak"


class Condition(Record):
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

    knobs: Mapping[str, int] = {}
    toxics: tuple[Mapping[str, str], ...] = ()
    host: Mapping[str, str] = {}
    generator_cpus: float | None = None
    spin: float | None = None
    connections: int | None = None

    @property
    def text(self) -> str:
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
# What no measured waiting covers; also the part of a request's time that no part of the lab saw.
UNEXPLAINED = "unexplained"


class Line(Record):
    """The CPU seconds per second that a part uses at a rate λ: a + b·λ. Under more load wake-ups
    are batched, so the cost of a request falls with λ. Fitted to that many `rates`, from `low` on.
    1: only b is known, and a counts as 0."""

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


class Demand(Record):
    """The CPU time of the server's process, and of the whole machine, which generator, proxy and
    downstream share: of the run's trials of the load's kind, where these have several rates, else
    of a light load on a warm JVM, without what the idle lab uses. None if unknown.

    Of a foreign service alone, as the R0 of the lab's servers follows from what they do: `r0_ms`,
    the mean of a single connection, which waits for no other, or `r0_problem`; `think_ms`, the
    generator's think time of that connection; `light_rps`, the answers per second of the light
    load."""

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


class Bound(Record):
    """X ≤ `rps` because of `resource`, by `formula`. `estimate`: it comes from a measured service
    demand, which may fall under load, so a faster run is not invalid."""

    resource: str
    rps: float
    formula: str
    estimate: bool = False


class Evidence(Record):
    """One number of a verdict, and the PromQL (or the file) it came from."""

    what: str
    value: float
    unit: str
    source: str


class Wait(Record):
    """Time of a request at a place (a part of TimeSplit) that is waiting for a resource: `ms` on
    average, or where that is None, a `part` of what no such time covers there. Not `measured`: it
    is inferred."""

    place: str
    ms: float | None = None
    part: float = 0.0
    measured: bool = True


class Held(Record):
    """Of the waiting for a resource `share` is due to how much there is of it, the rest to what
    makes it held for `longer_ms` more than it must, at the places `inside`."""

    share: float
    longer_ms: float
    inside: tuple[str, ...]


class Excess(Record):
    """How much longer than R0 a request took on average, Z of a closed load included, and where:
    ms by part of TimeSplit, none below 0. `r0_ms` None: not known, and taken for 0. `resolved_ms`
    is the least that the trial resolves."""

    r0_ms: float | None
    ms: float
    resolved_ms: float
    places: Mapping[str, float]


class Balance(Record):
    """1 where the figures of a trial agree: `cpu` is what the lab's parts and all others used of
    the busy time of the CPUs; `in_flight` is X · (R + Z) / N of a closed load. `others` is the part
    of the busy time that others used, measured by the cgroup of all. None: not known."""

    cpu: float | None = None
    in_flight: float | None = None
    others: float | None = None


class Standing(Record):
    """How one resource did in the window. `use` of its `capacity`, in `unit`; `failed` is the share
    of the requests that failed for want of it; `waits` is what waited for it; `takes` are the
    parts of the waiting for other resources (their names as places) that are due to this one.
    `detail` names which of several it is: a site, a machine. None: not known.

    `share` is its share of the excess, `measured` the part of that by measured waiting."""

    use: float | None = None
    capacity: float | None = None
    unit: str = ""
    detail: str = ""
    resource: str = ""
    failed: float = 0.0
    waits: tuple[Wait, ...] = ()
    held: Held | None = None
    takes: tuple[Wait, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    share: float = 0.0
    measured: float = 0.0

    @property
    def full(self) -> float:
        """The share of it that is in use; 0 where that is not known."""
        return self.use / self.capacity if self.use and self.capacity else 0.0


class Missing(Record):
    """A piece of evidence that is missing, as a code. `doubts`: it makes the verdict weak."""

    code: str
    detail: str = ""
    doubts: bool = False


# What a verdict rests on: `tail` is an excess that is none but for the slowest requests.
Unjudged = Literal["spike", "no figures", "held", "no series", "no such route", "bad series"]
Basis = Literal["errors", "none", "excess", "tail", "unanswered"] | Unjudged


class Verdict(Record):
    """What limited a trial: a resource, NONE (the load itself is its bound) or UNKNOWN.

    `strength` is how strong the evidence is, empty for UNKNOWN. `ranked` has every resource that
    was seen, by its share of the excess. `missing` is what is not known. `balance` shows whether
    the figures agree.
    """

    bottleneck: str
    strength: Strength
    basis: Basis
    excess: Excess | None
    ranked: tuple[Standing, ...] = ()
    missing: tuple[Missing, ...] = ()
    balance: Balance = Balance()

    def __post_init__(self) -> None:
        if (self.strength == "") != (self.bottleneck == UNKNOWN):
            raise ValueError(f"{self.bottleneck} with the strength {self.strength!r}")

    @property
    def named(self) -> Standing | None:
        return next((seen for seen in self.ranked if seen.resource == self.bottleneck), None)

    @property
    def shares(self) -> dict[str, float]:
        """The share of the excess of each resource that has one, the largest first, and what is
        unexplained; empty where there is no excess."""
        if self.excess is None or self.excess.ms <= 0:
            return {}
        shares = {seen.resource: seen.share for seen in self.ranked if seen.share > 0}
        return {**shares, UNEXPLAINED: max(0.0, 1 - sum(shares.values()))}


def use_text(standing: Standing) -> str:
    """How much of a resource is in use, for people; empty where it is not known."""
    if standing.use is None:
        return ""
    most = "" if standing.capacity is None else f" of {three(standing.capacity)}"
    return f"{three(standing.use)}{most} {standing.unit}"


def three(value: float) -> str:
    """A value for people: in three digits, or the whole number where it has more."""
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:.3g}"
