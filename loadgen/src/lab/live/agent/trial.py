"""The trial that the driver announces, for the probe and the marks.

Pure: no I/O, time comes as an argument.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeGuard
from urllib.parse import urlsplit

from lab.errors import WordError
from lab.model import MODES

PHASES = ("warmup", "measure")
DEFAULT_EXPIRES_S = 900.0
LONGEST_EXPIRES_S = 86_400.0
LONGEST_TEXT = 200
MOST_ATTENDED = 100


@dataclass(frozen=True, slots=True)
class Trial:
    """One announced trial. ``offered_rps`` is None in a closed load. ``probe_rps`` is the highest
    rate that the probe may send at: 0 for no request at all, None for no limit. The probe speaks
    plain HTTP only."""

    run: str
    trial: str
    server: str
    route: str
    engine: str
    mode: str
    concurrency: int
    offered_rps: float | None
    phase: str
    url: str
    probe_rps: float | None = None

    def __post_init__(self) -> None:
        for name in ("run", "trial", "server", "route", "engine", "url"):
            text = getattr(self, name)
            if not isinstance(text, str) or not 0 < len(text) <= LONGEST_TEXT:
                raise WordError(f"{name}={text!r}: allowed text of 1..{LONGEST_TEXT} characters")
        if self.mode not in MODES:
            raise WordError(f"mode={self.mode!r}: allowed {', '.join(MODES)}")
        if self.phase not in PHASES:
            raise WordError(f"phase={self.phase!r}: allowed {', '.join(PHASES)}")
        if type(self.concurrency) is not int or self.concurrency < 1:
            raise WordError(f"concurrency={self.concurrency!r}: allowed whole numbers from 1")
        if self.offered_rps is not None and not _positive(self.offered_rps):
            raise WordError(f"offered_rps={self.offered_rps!r}: allowed null or above 0")
        if not (self.probe_rps is None or _is_zero(self.probe_rps) or _positive(self.probe_rps)):
            raise WordError(f"probe_rps={self.probe_rps!r}: allowed null or from 0")
        url = urlsplit(self.url)
        schemes = ("http", "https") if self.probe_rps == 0 else ("http",)
        if url.scheme not in schemes or not url.hostname:
            raise WordError(f"url={self.url!r}: allowed {' or '.join(schemes)}://host[:port]/path")

    def same_probe(self, other: Trial | None) -> bool:
        """Whether the probe sends the same requests for the other trial: only the phase differs."""
        return other is not None and replace(other, phase=self.phase) == self


def parse_announcement(body: Mapping[str, Any]) -> tuple[Trial, float]:
    """The trial, and for how many seconds it holds unless it is announced again, from the JSON of
    ``PUT /trial``: the fields of Trial (``probe_rps`` may be left out), and
    optionally ``expires_s`` (0 < s <= 86400, default 900) after which a trial that nobody
    announced again is dropped.

    Raises WordError, also for unknown and missing fields.
    """
    names = [field.name for field in fields(Trial)]
    unknown = [str(name) for name in body if name not in (*names, "expires_s")]
    missing = [name for name in names if name not in body and name != "probe_rps"]
    if unknown or missing:
        what = f"unknown field {unknown[0]}" if unknown else f"field {missing[0]} is missing"
        raise WordError(f"{what}: allowed are {', '.join(names)}, expires_s")
    return Trial(**{name: body[name] for name in names if name in body}), _expires_s(body)


def parse_attention(body: Mapping[str, Any]) -> tuple[frozenset[str], bool, float]:
    """The servers, whether nothing is to be observed, and for how many seconds that lasts, from the
    JSON of ``PUT /attention``. Raises WordError."""
    servers = body.get("servers")
    if not isinstance(servers, list) or len(servers) > MOST_ATTENDED:
        raise WordError(f"servers={servers!r}: allowed a list of at most {MOST_ATTENDED} names")
    for server in servers:
        if not isinstance(server, str) or not 0 < len(server) <= LONGEST_TEXT:
            raise WordError(f"servers: {server!r}: allowed text of 1..{LONGEST_TEXT} characters")
    unobserved = body.get("unobserved", False)
    if not isinstance(unobserved, bool):
        raise WordError(f"unobserved={unobserved!r}: allowed true and false")
    return frozenset(servers), unobserved, _expires_s(body)


def _expires_s(body: Mapping[str, Any]) -> float:
    expires_s = body.get("expires_s", DEFAULT_EXPIRES_S)
    if not _positive(expires_s) or expires_s > LONGEST_EXPIRES_S:
        raise WordError(f"expires_s={expires_s!r}: allowed above 0 to {LONGEST_EXPIRES_S:g}")
    return float(expires_s)


def _is_zero(number: object) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and number == 0


def _positive(number: object) -> TypeGuard[float]:
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    return math.isfinite(number) and number > 0
