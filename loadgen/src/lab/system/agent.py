"""The client of the live agent, and its messages."""

from __future__ import annotations

from collections.abc import Sequence
from copy import replace
from datetime import datetime
from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct, to_builtins

from lab.model import Mode
from lab.system.http import Http, Part

HOST, PORT = "loadgen", 9464
DEADLINE_S = 2.0
# Longer than the preparation of any trial.
ATTENTION_S = 300.0
# The agent looks at Toxiproxy before it answers.
LOOK_DEADLINE_S = 10.0

Phase = Literal["warmup", "measure"]
PHASES: tuple[Phase, ...] = get_args(Phase)
Moment = Annotated[datetime, Meta(tz=True)]
# When which proxy's toxic was added, changed or removed (WHOLE_PROXY: the proxy went down or up).
Change = tuple[Moment, str, str]
Span = tuple[Moment, Moment]


class Trial(Struct, frozen=True, forbid_unknown_fields=True):
    """The trial that runs (PUT /trial), for `expires_s` unless it is announced again.
    `offered_rps` is None in a closed load. `probe_rps` is the highest rate that the probe may send
    at: 0 for no request at all, None for no limit but its own. The probe speaks plain HTTP only."""

    run: str
    trial: str
    server: str
    route: str
    engine: str
    mode: Mode
    concurrency: int
    offered_rps: float | None
    phase: Phase
    url: str
    probe_rps: float | None
    expires_s: float

    def is_probed_as(self, other: Trial | None) -> bool:
        """True if the probe sends the same requests for both: they differ in phase only."""
        if other is None:
            return False
        return replace(other, phase=self.phase, expires_s=self.expires_s) == self


class Attention(Struct, frozen=True, forbid_unknown_fields=True):
    """The servers that a driver measures (PUT /attention), for `expires_s`."""

    servers: tuple[str, ...]
    expires_s: float


class ToxicsSeen(Struct, frozen=True):
    """What the agent saw of Toxiproxy (GET /toxics). `answers`: the last look was answered.
    `watched` are the first and the last answered look, `gaps` the times between them without any.
    `history` has the changes in their order. Toxics of the first look have none: they are older."""

    answers: bool
    watched: Span | None
    gaps: tuple[Span, ...] = ()
    history: tuple[Change, ...] = ()

    def last_changes(self, proxy: str) -> dict[str, datetime]:
        """When each toxic of the proxy last changed."""
        return {toxic: at for at, name, toxic in self.history if name == proxy}


class Agent(Part):
    """Every method raises LabUnreachable."""

    def __init__(self, http: Http) -> None:
        super().__init__(http, "agent", f"http://{HOST}:{PORT}")

    def attend(self, *servers: str) -> None:
        """These servers are measured, so Prometheus scrapes the others rarely; none: no longer
        any. The agent forgets it after ATTENTION_S."""
        self._put("/attention", Attention(servers, ATTENTION_S))

    def announce(self, trial: Trial) -> None:
        self._put("/trial", trial)

    def send_lines(self, lines: Sequence[str]) -> None:
        """Pass on lines of the announced trial's engine. From any thread."""
        self.call("PUT", "/load", deadline_s=DEADLINE_S, content="\n".join(lines))

    def end_trial(self) -> None:
        self.call("DELETE", "/trial", deadline_s=DEADLINE_S)

    def toxics_seen(self) -> ToxicsSeen:
        return self.get("/toxics", ToxicsSeen, LOOK_DEADLINE_S)

    def check(self) -> None:
        self.call("GET", "/health")

    def _put(self, path: str, announced: Trial | Attention) -> None:
        self.call("PUT", path, to_builtins(announced), DEADLINE_S)
