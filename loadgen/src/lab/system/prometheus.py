"""Asks Prometheus over its HTTP API."""

import math
from collections.abc import Mapping

import msgspec

from lab.errors import LabUnreachable
from lab.model import Series
from lab.system.http import DEADLINE_S, Http, Part

# A thousand series of minutes on a busy machine.
QUERY_DEADLINE_S = 60.0
QUERY_BYTES = 256 << 20
Point = tuple[float, str]


class Target(msgspec.Struct, frozen=True, rename="camel"):
    """A scrape target as Prometheus sees it."""

    labels: dict[str, str]
    health: str
    last_error: str = ""

    @property
    def job(self) -> str:
        return self.labels.get("job", "")

    @property
    def instance(self) -> str:
        return self.labels.get("instance", "")

    @property
    def up(self) -> bool | None:
        """None: not scraped yet, as after a change of its interval."""
        return None if self.health == "unknown" else self.health == "up"


class _Targets(msgspec.Struct, rename="camel"):
    active_targets: tuple[Target, ...]


class _Found(msgspec.Struct):
    metric: dict[str, str]
    values: list[Point] = []
    value: Point = (0.0, "nan")


class _Results(msgspec.Struct):
    result: list[_Found]


class Prometheus(Part):
    """Every method raises LabUnreachable."""

    def __init__(self, http: Http) -> None:
        super().__init__(http, "prometheus", "http://prometheus:9090")

    def version(self) -> str:
        answer = self.call("GET", "/api/v1/status/buildinfo")
        return self.field(answer, "data", dict[str, str]).get("version", "unknown")

    def targets(self) -> tuple[Target, ...]:
        answer = self.call("GET", "/api/v1/targets?state=active")
        return self.field(answer, "data", _Targets).active_targets

    def series(self, selector: str, until_s: float) -> tuple[Series, ...]:
        """The finite samples of a range selector that ends at `until_s` (seconds since 1970)."""
        form = {"query": selector, "time": f"{until_s:.3f}"}
        series = []
        for found in self._query(form, QUERY_DEADLINE_S):
            points = [(at, self._number(text)) for at, text in found.values]
            points = [point for point in points if math.isfinite(point[1])]
            if points:
                series.append(Series(found.metric, *zip(*points, strict=True)))
        return tuple(series)

    def values(self, expr: str, deadline_s: float) -> tuple[tuple[dict[str, str], float], ...]:
        """The labels and the value of each series now."""
        results = self._query({"query": expr}, deadline_s)
        return tuple((found.metric, self._number(found.value[1])) for found in results)

    def time_s(self) -> float:
        """Its clock, in seconds since 1970, to a millisecond."""
        for _, value in self.values("vector(time())", DEADLINE_S):
            return value
        raise LabUnreachable("it has no time", self.name)

    def _query(self, form: Mapping[str, str], deadline_s: float) -> list[_Found]:
        answer = self.ask("POST", "/api/v1/query", deadline_s, QUERY_BYTES, data=form)
        if not answer.is_success:
            why = self.field(answer, "error", str)
            raise LabUnreachable(f"it refused {form['query']!r}: {why}", self.name)
        return self.field(answer, "data", _Results).result

    def _number(self, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise LabUnreachable(f"a value is {text!r}", self.name) from None
