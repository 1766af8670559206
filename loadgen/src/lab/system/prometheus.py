"""Asks Prometheus over its HTTP API."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lab.errors import LabUnreachable
from lab.model import Series
from lab.system.http import Http

# A thousand series of minutes on a busy machine.
QUERY_DEADLINE_S = 60.0
QUERY_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Target:
    """A scrape target as Prometheus sees it. `up` None: it has not been scraped yet, as where its
    interval has just been changed."""

    job: str
    instance: str
    up: bool | None
    error: str


class Prometheus:
    """The Prometheus at `url`. Every method raises LabUnreachable."""

    def __init__(self, url: str, http: Http) -> None:
        self._url = url.rstrip("/")
        self._http = http

    def version(self) -> str:
        answer = self._http.get("prometheus", f"{self._url}/api/v1/status/buildinfo")
        data = answer.get("data")
        return str(data.get("version", "unknown")) if isinstance(data, dict) else "unknown"

    def targets(self) -> tuple[Target, ...]:
        answer = self._http.get("prometheus", f"{self._url}/api/v1/targets?state=active")
        try:
            return tuple(
                Target(
                    job=str(target["labels"]["job"]),
                    instance=str(target["labels"]["instance"]),
                    up=None if target["health"] == "unknown" else target["health"] == "up",
                    error=str(target.get("lastError", "")),
                )
                for target in answer["data"]["activeTargets"]
            )
        except (KeyError, TypeError) as failure:
            raise LabUnreachable(f"prometheus: its targets have no {failure}") from None

    def series(self, selector: str, until_s: float) -> tuple[Series, ...]:
        """The scraped samples of a range selector that ends at `until_s` (seconds since 1970),
        without samples that are not finite."""
        asked = {"query": selector, "time": f"{until_s:.3f}"}
        found = self._results(asked, _finite)
        return tuple(
            Series(labels, *zip(*points, strict=True)) for labels, points in found if points
        )

    def values(self, expr: str, deadline_s: float) -> tuple[tuple[dict[str, str], float], ...]:
        """The instant query's answer now: the labels and the value of each series."""
        return self._results({"query": expr}, _value, deadline_s)

    def time_s(self, deadline_s: float) -> float:
        """What its clock says now, in seconds since 1970, to a millisecond."""
        ((_, value),) = self.values("vector(time())", deadline_s) or ((None, math.nan),)
        if math.isnan(value):
            raise LabUnreachable("prometheus does not tell its time")
        return value

    def _results[T](
        self,
        asked: Mapping[str, str],
        read: Callable[[Mapping[str, Any]], T],
        deadline_s: float = QUERY_DEADLINE_S,
    ) -> tuple[T, ...]:
        """What is read of each series of an answer. Where Prometheus refuses a query, the error
        has its own words."""
        url = f"{self._url}/api/v1/query"
        answer = self._http.ask(
            "prometheus", "POST", url, None, deadline_s, most_bytes=QUERY_BYTES, form=asked
        )
        try:
            body = answer.json()
        except ValueError:
            raise LabUnreachable(
                f"prometheus: {url} does not answer with JSON (status {answer.status_code})"
            ) from None
        if not isinstance(body, dict) or body.get("status") == "error" or not answer.is_success:
            why = body.get("error") if isinstance(body, dict) else answer.status_code
            raise LabUnreachable(f"prometheus refused {asked['query']!r}: {why}")
        try:
            return tuple(read(result) for result in body["data"]["result"])
        except (LookupError, TypeError, ValueError) as failure:
            raise LabUnreachable(
                f"prometheus: its answer to {asked['query']} is wrong: {failure}"
            ) from None


def _finite(result: Mapping[str, Any]) -> tuple[dict[str, str], tuple[tuple[float, float], ...]]:
    points = ((float(at), float(value)) for at, value in result["values"])
    return dict(result["metric"]), tuple(point for point in points if math.isfinite(point[1]))


def _value(result: Mapping[str, Any]) -> tuple[dict[str, str], float]:
    return dict(result["metric"]), float(result["value"][1])
