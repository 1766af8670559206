"""The plan of a measurement: an experiment, and one trial of it."""

import re
from collections.abc import Mapping
from copy import replace
from typing import Annotated, Literal, get_args

from msgspec import Meta

from lab.model.own_lever import OwnLever
from lab.model.record import AboveZero, Count, Json, Positive, Record
from lab.model.verdict import AS_IT_IS, Condition

Mode = Literal["open", "closed"]
MODES: tuple[Mode, ...] = get_args(Mode)
Arrivals = Literal["constant", "poisson"]
# What the connections of a held load do while the memory is read: nothing after an answer, or wait
# for one.
Hold = Literal["idle", "in-flight"]
# After the name of an invalid trial: the trial that repeats it.
AGAIN = "-again"
# Names of headers whose values are stored nowhere, and what stands there instead.
_SECRET = re.compile("authorization|cookie|token|secret|key|password", re.IGNORECASE)
NOT_STORED = "(not stored)"
# The first status that is an error, where nobody expects another.
FAILURE = 400


class Spike(Record):
    """Connections beside the trial's own: `extra` of them for `peak_s`, `repeats` times, each
    with `calm_s` before it and `calm_s` after the last. Recovered: `tolerance` (a share)
    around the p95 of the calm before the first spike, `steady_s` seconds on end."""

    extra: Positive
    extra_rps: Positive | None
    calm_s: Positive
    peak_s: Positive
    repeats: Positive
    tolerance: AboveZero
    steady_s: Positive

    @property
    def total_s(self) -> int:
        """How long the trial's own load lasts."""
        return self.calm_s + self.repeats * (self.peak_s + self.calm_s)


class ToxicStep(Record):
    """A change of the toxics, `at_s` seconds after the measured window opens; `words` are those
    of `make toxic`."""

    at_s: Positive
    words: Annotated[Mapping[str, str], Meta(min_length=1)]

    @property
    def text(self) -> str:
        return " ".join(f"{word}={value}" for word, value in self.words.items())


class Expect(Record):
    """What the answers to a request have to be: of this status, or one of these (none: below 400),
    and with a text in the body."""

    status: int | tuple[int, ...] = ()
    body_contains: str | None = None

    @property
    def statuses(self) -> tuple[int, ...]:
        return (self.status,) if isinstance(self.status, int) else self.status

    def takes(self, status: int) -> bool:
        """True if an answer of this status is right, if its body is."""
        return status in self.statuses if self.statuses else status < FAILURE


class Request(Record):
    """One of the requests that a load is made of: `path` with its query, and `weight`, which is its
    share of all of them where the weights add up to 1. `expect` None: a status below 400 is
    right."""

    path: str
    method: str = "GET"
    headers: Mapping[str, str] = {}
    body: str = ""
    weight: float = 1.0
    expect: Expect | None = None

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """The headers that hold what is to stay secret, by their names."""
        return tuple(name for name in self.headers if _SECRET.search(name))

    @property
    def stored(self) -> "Request":
        """The request as it is written to disk: without the values of its secrets."""
        return replace(self, headers={**self.headers, **dict.fromkeys(self.secrets, NOT_STORED)})


class Experiment(Record):
    """An experiment: its load, its servers, and its question.

    * `kind` is the name of a Kind of lab/kinds/, which plans the trials and reads them;
      `own` are the settings of that kind alone, as plain values
    * `rate_rps` None means auto: a share of the predicted bound, the same for every server
    * `arrivals` is how the requests of an open load follow each other
    * `warmup_s` None means what the engine needs; `engines` empty means the one that is here
    * `launches` 0: the JVMs that run; n: that many fresh JVMs per server, interleaved; of a target
      fresh containers
    * `arms`: names under which every server is measured as if it were several (A/A)
    * `target`: scheme, host and port of a service that is not the lab's, which is then the only
      server; None: servers of the lab. Its load is made of `requests` (none: GET of the route), and
      the path `ready` answers when it is (None: the route does); `levers` are what the lab may
      change of its container, by the resource that each lifts; `subject` is the name of the file
      that all of this was read from, None where there is no file
    * `scale`: what the durations of the file were multiplied by; other than 1 is a quick look
    * `longer`: a window may be longer than `duration_s` where the expected latency needs it
    * `patience_s`: so long the run waits in all, before its trials, until others leave the CPUs to
      the lab
    * `words` are kept as the user gave them
    """

    name: str
    servers: tuple[str, ...]
    routes: tuple[str, ...]
    concurrencies: tuple[Positive, ...]
    modes: tuple[Mode, ...]
    rate_rps: int | None
    duration_s: Positive
    warmup_s: int | None
    engines: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    question: str = ""
    hypothesis: str = ""
    kind: str = "loads"
    own: Mapping[str, Json] = {}
    launches: Count = 0
    arms: tuple[str, ...] = ()
    scale: AboveZero = 1.0
    target: str | None = None
    longer: bool = False
    arrivals: Arrivals = "constant"
    requests: tuple[Request, ...] = ()
    ready: str | None = None
    levers: Mapping[str, OwnLever] = {}
    subject: str | None = None
    patience_s: Count = 0

    def __post_init__(self) -> None:
        for name in ("servers", "routes", "concurrencies", "modes", "engines", "arms"):
            values = getattr(self, name)
            if len({*values}) < (len(values) or name not in ("engines", "arms")):
                raise ValueError(f"{name} must be given, each once: {values}")
        if self.arms and not self.launches:
            raise ValueError("arms need fresh JVMs")
        if self.arrivals != "constant" and "open" not in self.modes:
            raise ValueError("only an open load has other arrivals than its answers allow")


class TrialPlan(Record):
    """The plan of one trial: one server, one load, one engine.

    * open: `offered_rps` requests per second in all, evenly or as a Poisson process (`arrivals`),
      in which each request comes at random, independent of all others. closed: `offered_rps` is
      None, every connection sends again as soon as it is answered
    * `launch` counts fresh JVMs from 1; 0 is a JVM that ran already. `draw`: how many trials of
      this load its JVM had before: each has other arrivals at random
    * `spike` is load beside the one described here; `script` changes the toxics while it runs;
      `condition` is how the lab was changed for it
    * `repeats` is the name of the invalid trial that this one repeats
    * `requests` are what is sent to the host of `url`; none: GET of `url`
    * `asks_live`: the JVM is made to collect everything once its load is over, and what lives then
      is recorded. `hold`: every connection sends one request and stays open, and the memory is
      recorded meanwhile
    * `limits`: latencies in ms by name, as p99, of each objective. The window ends before its time
      as soon as it is known on which side of them the trial is, where its engine tells that
    """

    trial: str
    server: str
    url: str
    route: str
    engine: str
    mode: Mode
    concurrency: Positive
    offered_rps: int | None
    predicted_rps: float | None
    duration_s: Positive
    warmup_s: int | None
    cores: Positive
    launch: int = 0
    arm: str | None = None
    spike: Spike | None = None
    script: tuple[ToxicStep, ...] = ()
    condition: Condition = AS_IT_IS
    repeats: str | None = None
    arrivals: Arrivals = "constant"
    requests: tuple[Request, ...] = ()
    draw: int = 0
    asks_live: bool = False
    hold: Hold | None = None
    limits: Mapping[str, tuple[float, ...]] = {}

    def __post_init__(self) -> None:
        if (self.mode == "open") != (self.offered_rps is not None):
            raise ValueError("an open trial offers a rate, a closed one does not")
        if self.mode == "closed" and self.arrivals != "constant":
            raise ValueError("a closed load has no arrivals of its own")
        if self.mode == "open" and self.hold:
            raise ValueError("a load that is held is closed")
