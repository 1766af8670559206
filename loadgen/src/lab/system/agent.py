"""The live agent: it hears which trial runs and what its load shows, and watches the toxics."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from lab.model import TrialPlan
from lab.system.http import Http, Part

DEADLINE_S = 2.0
# Longer than the longest preparation of a trial. The trial itself is marked.
ATTENTION_S = 300.0
LOOK_DEADLINE_S = 10.0
# The most of what a server can do that the live probe may use: what a trial may miss (99 % kept).
PROBE_SHARE = 0.01


class _Span(msgspec.Struct):
    since: datetime = msgspec.field(name="from")
    until: datetime = msgspec.field(name="to")


class _Watched(_Span):
    gaps: list[_Span] = []


class _Change(msgspec.Struct):
    since: datetime
    proxy: str
    toxic: str


class ToxicsSeen(msgspec.Struct):
    """What the agent saw of the toxics. `changes` has the last change of each toxic in force,
    `history` every change (toxic "": the proxy went down or up); `watched` are its first and last
    look (None: none was answered), with the times in between without any (`gaps`)."""

    changes: list[_Change] = []
    first_look: datetime | None = None
    history: list[_Change] = []
    watched: _Watched | None = None


class Agent(Part):
    """Every method raises LabUnreachable."""

    def __init__(self, http: Http, url: str) -> None:
        super().__init__(http, "agent", url)

    def attend(self, *servers: str) -> None:
        """These servers are measured, so Prometheus looks rarely at the others; none: no longer
        any. The agent forgets after ATTENTION_S."""
        body = {"servers": servers, "expires_s": ATTENTION_S}
        self.call("PUT", "/attention", body, DEADLINE_S)

    def mark(
        self, run: str, plan: TrialPlan, phase: str, expires_s: float, most_rps: float | None
    ) -> None:
        """This trial runs, in this phase. The agent forgets it after `expires_s`, should the driver
        die. It probes with PROBE_SHARE of `most_rps`, None: as its own settings say."""
        mark = {
            "run": run,
            "trial": plan.trial,
            "server": plan.server,
            # The label of the servers' own metrics is the path alone.
            "route": plan.route.partition("?")[0],
            "engine": plan.engine,
            "mode": plan.mode,
            "concurrency": plan.concurrency,
            "offered_rps": plan.offered_rps,
            "phase": phase,
            "url": plan.url,
            "probe_rps": None if most_rps is None else PROBE_SHARE * most_rps,
            "expires_s": expires_s,
        }
        self.call("PUT", "/trial", mark, DEADLINE_S)

    def pass_on(self, lines: Sequence[str]) -> None:
        """Lines of the marked trial's engine, as they are. From any thread."""
        self.call("PUT", "/load", deadline_s=DEADLINE_S, content="\n".join(lines))

    def unmark(self) -> None:
        self.call("DELETE", "/trial", deadline_s=DEADLINE_S)

    def toxics_seen(self) -> ToxicsSeen:
        """It looks at Toxiproxy before it answers."""
        return self.get("/toxics", ToxicsSeen, LOOK_DEADLINE_S)

    def check(self) -> None:
        self.call("GET", "/health")
