"""What an experiment finds, from several trials: codes and numbers, of which the reports make
texts (`lab.report.findings`)."""

from collections.abc import Mapping
from typing import Literal

from lab.model.own_lever import SettingChange
from lab.model.record import Record
from lab.model.remark import Remark
from lab.model.verdict import Condition, Line, Verdict


class Finding(Record):
    """An answer that follows from several trials: a capacity, a recovery time, a growth. `value`
    None: not found. `low` and `high` are its 95 % interval, where it has one; of a search on few
    JVMs, the ends of what it left open."""

    name: str
    server: str
    launch: int
    value: float | None
    unit: str
    low: float | None
    high: float | None


class NotFound(Finding):
    """Why a trial, or a run, has none of the findings of this name."""

    problems: tuple[Remark, ...]


class Named(Finding):
    """The share of planted trials with a `right` verdict. `planted` is the resource, and `severity`
    what the load asked of it, where they all have one. `strong` of the right ones had strong
    evidence. `missed` is what the others named instead, by trial; `sure` had strong evidence."""

    planted: str | None
    severity: float | None
    mode: str | None
    trials: int
    right: int
    strong: int
    missed: Mapping[str, str]
    sure: tuple[str, ...]


class PerConnection(Finding):
    """The memory of a connection: the slope over the connections of so many valid trials."""

    trials: int
    fewest: int
    most: int


class Dosed(Finding):
    """How an arm compares with the first arm of its load, which has no dose: `answers` counts those
    of groups of rounds; `value` is the share that says the dose is there (of an arm without one:
    that anything is). The ratios are medians over the rounds."""

    load: str
    dose: float
    answers: Mapping[str, int]
    goodput_ratio: float | None
    p95_ratio: float | None


class GaveWay(Record):
    """What the trials above a capacity name: `resource` (None: most of them name none) by `named`
    of the `missed`. `strong` if most of several have strong evidence. `verdict` is that of the
    trial nearest to the capacity."""

    resource: str | None
    named: int
    missed: int
    strong: bool
    verdict: Verdict | None


class Sustained(Finding):
    """The load at which a server meets an objective: `value` in half of the trials, `often` in 95
    of 100, each with its interval, from `used` of `trials`. `open_above`: no trial missed it, and
    `open_below`: none met it, so the value is an end of the tried loads. `limits` are the latencies
    in ms that the objective allows, by name."""

    objective: str
    limits: Mapping[str, float]
    often: tuple[float, float, float] | None
    launches: int
    trials: int
    used: int
    open_above: bool
    open_below: bool
    gave_way: GaveWay | None


class InUnits(Finding):
    """The cost of a server at its headline: `server_us`, its CPU time per request, over
    `control_us`, that of the control parts under `lane` at the same rate (None: those of its own
    trials; then with the interval over launches). `busy` is the share of the host's `cpus` that was
    in use in the trials that `broke`, if any did, else in those of the headline. `line` is the CPU
    time of the whole lab by rate, if the CPUs may be what the server broke by."""

    lane: str | None
    server_us: float
    control_us: float
    busy: float | None
    broke: bool
    cpus: int | None
    line: Line | None


class Drift(Finding):
    """The machine changed during the run: the medians of `what` differ by `value` (a share) between
    `quarters` of the trials."""

    what: str
    quarters: tuple[float, ...]


class Calm(Record):
    """The time before the first disturbance: its p95, the p95 up to which a second is calm, and how
    many of its own `seconds` are `above`."""

    p95_ms: float
    limit_ms: float
    seconds: int
    above: int


class Recovery(Record):
    """The recovery from one disturbance. `after_s` seconds after its end the load was as in the
    calm for some seconds on end; None: not in `watched_s`. Of the `left` seconds after these some
    were not (`above`). `worst_ms` is the p95 of the worst second, None if one had no answer."""

    after_s: float | None
    worst_ms: float | None
    watched_s: float
    left: int = 0
    above: int = 0


class Disturbance(Record):
    """Spike or fault `number` of the `count` of a trial; `changes` are the toxics of a fault."""

    name: str
    number: int
    count: int
    lasted_s: float
    changes: tuple[str, ...] = ()


class Felt(Record):
    """What the load felt since a disturbance began: the slowest good answer, and errors among the
    answers; and the requests of the whole run that timed out, or lost their connection."""

    slowest_ms: float | None
    errors: int
    answers: int
    timeouts: int
    lost: int


class Recovered(Finding):
    """The recovery from a disturbance: `value` is `recovery.after_s`, for `steady_s` on end."""

    disturbance: Disturbance
    calm: Calm
    recovery: Recovery
    felt: Felt
    steady_s: int


class Recoveries(Finding):
    """The median recovery over the `count` disturbances of a launch, then over launches, of which
    `recovered` have one; in `failed` the server itself failed."""

    disturbance: str
    count: int
    recovered: int
    launches: int
    failed: int


class Legs(Record):
    """The load on the JVM whose growth is found, in `load_s`. `counted` of the `legs` of a launch
    are neither `left_out`, each with its reasons, nor on another JVM. Answers while a run was
    interrupted (`interruptions`) are not in it. `old_collected`: a leg collected the old
    generation; else what died there within a leg is in its heap."""

    load_s: float
    legs: int
    counted: int
    on_other_jvms: int
    left_out: Mapping[str, tuple[Remark, ...]]
    interruptions: int
    old_collected: bool


class Grown(Finding):
    """The growth of a figure in an hour of load; None: too few samples. `levels` are those of the
    first part of the load, once it had settled, and of the last part."""

    levels: tuple[float, float, float] | None
    legs: Legs


# What a change says of a resource.
Answer = Literal["confirmed", "withdrawn", "inconclusive", "not tried"]


class Tried(Finding):
    """A step of an inquiry: `resources` that were changed together (for the reason `tie`, if they
    are several), and the answer with its reasons. `value` is the ratio of the goodput with the
    change to that without it, at `least` so much where nothing was answered without it.

    * `named`: the strength with which the verdict names them, None if it names another; `suspected`
      by the user
    * `at_most`: the ratio that the step allows; `lifted`: the changes were lifted afterwards
    * `doses`: the shares of the CPUs that were taken away, where the change takes them
    * `p95`: the ratio of the p95 (of a closed load the raw one), with its interval
    * `goodput`: the median without and with the change, in requests per second
    * `pairs` of `planned` count; `ended`: why no more
    * `again`: how many invalid trials of each side were run again
    """

    resources: tuple[str, ...]
    tie: Remark | None
    named: str | None
    suspected: bool
    changes: tuple[SettingChange, ...] = ()
    answer: Answer = "not tried"
    why: tuple[Remark, ...] = ()
    at_most: float | None = None
    lifted: bool = False
    least: bool = False
    doses: tuple[float, ...] = ()
    p95: tuple[float, float | None, float | None] | None = None
    goodput: tuple[float, float] | None = None
    pairs: int = 0
    planned: int = 0
    ended: tuple[Remark, ...] = ()
    again: Mapping[str, int] = {}


class Limit(Finding):
    """How an inquiry ended: the resource that limits (UNKNOWN, NONE), under which condition, and
    why nothing more was tried. `again`: how many invalid trials that name a resource were run
    again."""

    resource: str
    strength: str | None
    condition: Condition
    why: tuple[Remark, ...]
    again: int
