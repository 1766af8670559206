"""What a site tells of a run, of whatever kind it is, and on which machine it was measured."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lab.judge.same_lab import HOST
from lab.model import Json, Row
from lab.report import words
from lab.report.blocks import Block

UNTOLD = "not recorded"


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine by the facts that `lab.judge.same_lab` knows it by. `key` is its name in an
    address, the same in every site; `name` is for people."""

    key: str
    name: str

    @classmethod
    def of(cls, host: Mapping[str, Json], run: str) -> Machine:
        """That of the run's host. Where a fact is missing, no other run is known to be of it."""
        facts = [host.get(name) for name in HOST]
        missing = [name for name, fact in zip(HOST, facts, strict=True) if fact is None]
        if missing:
            return cls(f"of-{run}", f"that of {run} alone, as {', '.join(missing)} {UNTOLD}")
        key = f"m-{hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:8]}"
        return cls(key, f"{words.host(host)} ({key})")


def commit(versions: Mapping[str, Json]) -> str:
    """The code that ran, short. Changes that were not committed make it another one."""
    told = versions.get("commit")
    if not isinstance(told, str) or told in ("", "unknown"):
        return UNTOLD
    ends = {False: "", True: "-changed"}
    dirty = versions.get("commit_dirty")
    return told[:7] + (ends[dirty] if isinstance(dirty, bool) else "-perhaps-changed")


@dataclass(frozen=True, slots=True)
class SiteRun:
    """A run of a site.

    * `started` is when it began, as text that sorts like the time
    * `rows` are its trials, judged anew; none where it has no trials, or they cannot be read
    * `alike`: runs of one machine with the same number are alike in all that `make compare` asks
      for but commit and images, so they may stand in one figure. None: it is in no figure
    * `limits` are those of `lab.experiments.kind.TrialKind`
    * `shown` is what stands under its name; `said` are short facts beside it
    """

    name: str
    kind: str
    machine: Machine
    commit: str
    started: str
    servers: Sequence[str] = ()
    rows: Sequence[Row] = ()
    alike: int | None = None
    limits: Mapping[str, float] | None = None
    said: Sequence[str] = ()
    shown: Sequence[Block] = field(default=())

    @property
    def facets(self) -> dict[str, str]:
        """What an address can ask of all that the run holds."""
        return {
            "run": self.name,
            "kind": self.kind,
            "machine": self.machine.key,
            "commit": self.commit,
        }
