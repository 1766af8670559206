"""Asks a Prometheus over its HTTP API."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import httpx

from lab.errors import LabUnreachable
from lab.system.dashboards.model import Window

TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Series:
    """One series of an answer: its labels, and (seconds since 1970, value) pairs; samples
    that are not numbers (0/0 of an idle rate) are left out."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


class PrometheusReader:
    """Asks a Prometheus at ``url``. One thread; ``transport`` is the seam for tests."""

    def __init__(self, url: str, transport: httpx.BaseTransport | None = None) -> None:
        self._url = url.rstrip("/")
        self._http = httpx.Client(
            base_url=self._url, transport=transport, timeout=TIMEOUT_S, trust_env=False
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def range(self, expr: str, window: Window) -> tuple[Series, ...]:
        """The range query's series. Raises LabUnreachable, with Prometheus's own words where
        it refuses the query."""
        asked = {
            "query": expr,
            "start": f"{window.start_s:.3f}",
            "end": f"{window.end_s:.3f}",
            "step": f"{window.step_s:g}",
        }
        return tuple(_series(result) for result in self._ask("query_range", asked)["result"])

    def texts(self, expr: str, at_s: float) -> tuple[str, ...]:
        """The instant query's answer as the texts Grafana makes of it for a variable:
        ``name{label="value",…} value milliseconds`` for each series. Raises LabUnreachable."""
        data = self._ask("query", {"query": expr, "time": f"{at_s:.3f}"})
        return tuple(_text(result) for result in data["result"])

    def _ask(self, what: str, asked: Mapping[str, str]) -> Any:
        try:
            answer = self._http.post(f"/api/v1/{what}", data=asked)
            body = answer.json()
        except (httpx.HTTPError, ValueError) as failure:
            raise LabUnreachable(
                f"prometheus does not answer at {self._url} ({type(failure).__name__})"
            ) from failure
        if not isinstance(body, dict) or body.get("status") != "success":
            why = body.get("error") if isinstance(body, dict) else answer.status_code
            raise LabUnreachable(f"prometheus refused {asked['query']!r}: {why}")
        return body["data"]


def _text(result: Mapping[str, Any]) -> str:
    labels = dict(result["metric"])
    name = labels.pop("__name__", "")
    at, value = result["value"]
    pairs = ",".join(f'{label}="{text}"' for label, text in labels.items())
    return f"{name}{{{pairs}}} {value} {round(float(at) * 1000)}"


def _series(result: Mapping[str, Any]) -> Series:
    points = tuple((float(at), float(value)) for at, value in result["values"])
    return Series(
        labels=MappingProxyType(dict(result["metric"])),
        points=tuple(point for point in points if math.isfinite(point[1])),
    )
