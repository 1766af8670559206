"""Tells the live agent of the trial that runs and of its load; asks what it saw of the toxics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from lab.errors import LabUnreachable
from lab.model import TrialPlan
from lab.system.http import Http
from lab.system.traffic import ForeignServices

DEADLINE_S = 2.0
# Longer than the longest preparation of a trial. The trial itself is marked.
ATTENTION_S = 300.0
# The agent looks at Toxiproxy before it tells what it saw.
LOOK_DEADLINE_S = 10.0
# The most of a server's bound (of a foreign service: of what its light load did) that the live
# probe may use: what a trial may miss (99 % kept).
PROBE_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class ToxicsSeen:
    """What the agent saw of the toxics. `history` has every change as (when, proxy, toxic, "" for
    down and up); `watched` are its first and last look (None: none was answered), and `gaps` times
    in between without any."""

    history: tuple[tuple[datetime, str, str], ...]
    watched: tuple[datetime, datetime] | None
    gaps: tuple[tuple[datetime, datetime], ...]


class Agent:
    """The live agent at `url`. Every method raises LabUnreachable."""

    def __init__(self, http: Http, url: str, foreign: ForeignServices) -> None:
        self._http = http
        self._url = url
        self._foreign = foreign

    def attend(self, *servers: str) -> None:
        """Tell the agent which servers are measured, so that Prometheus looks rarely at the others;
        none: no longer any. It forgets by itself after ATTENTION_S."""
        told = {"servers": servers, "expires_s": ATTENTION_S}
        self._http.call("agent", "PUT", f"{self._url}/attention", told, DEADLINE_S)

    def mark(
        self,
        run: str,
        plan: TrialPlan,
        phase: str,
        expires_s: float,
        light_rps: float | None = None,
        *,
        streams: bool = False,
    ) -> None:
        """Tell the agent which trial runs, in which phase; it forgets by itself after
        `expires_s`, should the driver die. `light_rps` is what a foreign service did under its
        light load: without it nothing tells how little a probe may send, and none is sent. Nor is
        one where the load itself `streams` what it sees (`tell`)."""
        most_rps = plan.predicted_rps
        if streams:
            most_rps = 0.0
        elif plan.server in self._foreign:
            most_rps = min(light_rps or 0.0, plan.offered_rps or math.inf)
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
        self._http.call("agent", "PUT", f"{self._url}/trial", mark, DEADLINE_S)

    def tell(self, lines: Sequence[str]) -> None:
        """Hand on lines of the marked trial's engine, as they are. From any thread."""
        url = f"{self._url}/load"
        self._http.call("agent", "PUT", url, deadline_s=DEADLINE_S, content="\n".join(lines))

    def unmark(self) -> None:
        self._http.call("agent", "DELETE", f"{self._url}/trial", deadline_s=DEADLINE_S)

    def toxics_seen(self) -> ToxicsSeen:
        answer = self._http.get("agent", f"{self._url}/toxics", LOOK_DEADLINE_S)
        try:
            watched = answer["watched"]
            return ToxicsSeen(
                history=tuple(
                    (datetime.fromisoformat(one["since"]), str(one["proxy"]), str(one["toxic"]))
                    for one in answer["history"]
                ),
                watched=_span(watched) if watched else None,
                gaps=tuple(_span(gap) for gap in watched["gaps"]) if watched else (),
            )
        except (KeyError, TypeError, ValueError) as failure:
            raise LabUnreachable(f"agent: what it saw of the toxics is wrong: {failure}") from None

    def check(self) -> None:
        """Raises LabUnreachable unless the agent is well."""
        self._http.call("agent", "GET", f"{self._url}/health")


def _span(told: Mapping[str, str]) -> tuple[datetime, datetime]:
    return datetime.fromisoformat(told["from"]), datetime.fromisoformat(told["to"])
