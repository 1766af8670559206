"""The trial that the driver announces, for the probe and the marks.

Pure: no I/O, time comes as an argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta

from lab.errors import WordError
from lab.model import Mode
from lab.model.address import parse
from lab.store.records import from_json

Phase = Literal["warmup", "measure"]
PHASES: tuple[Phase, ...] = get_args(Phase)
Text = Annotated[str, Meta(min_length=1, max_length=200)]


@dataclass(frozen=True, slots=True)
class Trial:
    """One announced trial. ``offered_rps`` is None in a closed load. ``probe_rps`` is the highest
    rate that the probe may send at: 0 for no request at all, None for no limit. The probe speaks
    plain HTTP only."""

    run: Text
    trial: Text
    server: Text
    route: Text
    engine: Text
    mode: Mode
    concurrency: Annotated[int, Meta(ge=1)]
    offered_rps: Annotated[float, Meta(gt=0)] | None
    phase: Phase
    url: Text
    probe_rps: Annotated[float, Meta(ge=0)] | None = None

    def __post_init__(self) -> None:
        schemes = ("http", "https") if self.probe_rps == 0 else ("http",)
        try:
            scheme = parse(self.url).scheme
        except ValueError as failure:
            raise WordError(f"url={failure}") from None
        if scheme not in schemes:
            raise WordError(f"url={self.url!r}: allowed {' or '.join(schemes)}://host[:port]/path")

    def same_probe(self, other: Trial | None) -> bool:
        """Whether the probe sends the same requests for the other trial: only the phase differs."""
        return other is not None and replace(other, phase=self.phase) == self


@dataclass(frozen=True, slots=True)
class _Lasting:
    """For how many seconds something holds unless it is said again."""

    expires_s: Annotated[float, Meta(gt=0, le=86_400)] = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attention(_Lasting):
    servers: Annotated[tuple[Text, ...], Meta(max_length=100)]


def parse_announcement(body: Mapping[str, Any]) -> tuple[Trial, float]:
    """The trial, and for how many seconds it holds unless it is announced again, from the JSON of
    ``PUT /trial``: the fields of Trial (``probe_rps`` may be left out), and optionally
    ``expires_s``. Raises WordError, also for unknown and missing fields."""
    known = {name: value for name, value in body.items() if name != "expires_s"}
    lasting = {name: value for name, value in body.items() if name == "expires_s"}
    return _read(Trial, known), _read(_Lasting, lasting).expires_s


def parse_attention(body: Mapping[str, Any]) -> tuple[frozenset[str], float]:
    """The servers, and for how many seconds that lasts, from the JSON of ``PUT /attention``. Raises
    WordError."""
    told = _read(_Attention, body)
    return frozenset(told.servers), told.expires_s


def _read[T](kind: type[T], body: Mapping[str, Any]) -> T:
    try:
        return from_json(kind, body)
    except ValueError as failure:
        raise WordError(str(failure)) from None
