"""The routes of the servers' contract, as far as the driver needs to know them. No I/O.

Paths, parameters, defaults and limits are those of
servers/spec/src/main/java/lab/spec/Route.java; tests/model/test_routes.py holds the
two together. How long a request waits follows from what the routes do, see there.
"""

import math
import re
from collections.abc import Mapping
from typing import Literal

from lab.model.record import Record

# Where a JVM's JMX exporter listens.
EXPORTER_PORT = 9404
# Where the recorder listens, in a JVM that is no server of the lab.
RECORDER_PORT = 9405
# The user's machine, seen from a container (compose.yaml, extra_hosts).
THIS_MACHINE = "host.docker.internal"


class Parameter(Record):
    """A query parameter: a whole number with a default and limits."""

    name: str
    default: int
    least: int
    most: int

    def __str__(self) -> str:
        return f"{self.name}={self.least}..{self.most}"


class Route(Record):
    """One route. Its waits are named by its parameters, in milliseconds.

    * `waits`: a request waits at least for the shortest of these; empty: it does not wait, or
      as long as the downstream does
    * `asleep`: a loop that waits by blocking its thread is blocked for the product of these
    * `opens`: what a request opens besides its own connection
    * `in_synchronized`: it waits inside `synchronized`, where its server's threads block
    """

    path: str
    parameters: tuple[Parameter, ...] = ()
    waits: tuple[str, ...] = ()
    asleep: tuple[str, ...] = ()
    opens: Literal["connection to the downstream", "file"] | None = None
    in_synchronized: bool = False

    @property
    def calls_downstream(self) -> bool:
        """True if a request holds a second connection, to the downstream."""
        return self.opens == "connection to the downstream"

    @property
    def descriptors(self) -> int:
        """The open files that a request may hold at a server."""
        return 1 if self.opens is None else 2


class RouteCall(Record):
    """A route with the value of each of its parameters."""

    route: Route
    values: Mapping[str, int]

    @property
    def wait_ms(self) -> int | None:
        """How long a request waits without any load; None where the downstream decides."""
        if self.route.calls_downstream:
            return None
        return min((self.values[name] for name in self.route.waits), default=0)

    @property
    def asleep_ms(self) -> int:
        """For how long a request blocks a loop that waits by sleeping."""
        if not self.route.asleep:
            return 0
        return math.prod(self.values[name] for name in self.route.asleep)


_LINES = Parameter("lines", 10_000, 1, 100_000)


def _wait(default_ms: int) -> Parameter:
    return Parameter("wait_ms", default_ms, 0, 60_000)


ROUTES: tuple[Route, ...] = (
    Route("/", (_wait(10),), ("wait_ms",), ("wait_ms",)),
    Route("/downstream", opens="connection to the downstream"),
    Route("/synchronized", opens="connection to the downstream", in_synchronized=True),
    Route("/health"),
    Route("/compute", (Parameter("limit", 50_000, 2, 1_000_000),)),
    Route("/block", (_wait(300),), ("wait_ms",), ("wait_ms",)),
    Route("/file", (_LINES,), opens="file"),
    Route("/aggregate", (_wait(300), _LINES), ("wait_ms",), ("wait_ms",), "file"),
    Route("/aggregate-old", (_wait(300), _LINES), ("wait_ms",), ("wait_ms",), "file"),
    # A blocked loop has slept through its first branch before there is another one to race.
    Route(
        "/first-success",
        (Parameter("fast_ms", 100, 1, 60_000), Parameter("slow_ms", 300, 1, 60_000)),
        ("fast_ms", "slow_ms"),
        ("fast_ms",),
    ),
    Route(
        "/aggregate-with-fallback",
        (_wait(300), Parameter("timeout_ms", 200, 1, 60_000), _LINES),
        ("wait_ms", "timeout_ms"),
        ("wait_ms",),
        "file",
    ),
    Route(
        "/multi-aggregate",
        (Parameter("branches", 3, 1, 100), _wait(300)),
        ("wait_ms",),
        ("branches", "wait_ms"),
    ),
    Route("/metrics"),
)


def foreign(text: str) -> RouteCall:
    """A path with an optional query on a foreign service: what it waits for is not known."""
    return RouteCall(Route(text.partition("?")[0]), {})


def parse(text: str) -> RouteCall:
    """A path with an optional query, as `/block?wait_ms=100`. Raises ValueError saying what is
    wrong with it and what is allowed; the message begins with what was given."""
    path, question, query = text.partition("?")
    route = next((route for route in ROUTES if route.path == path), None)
    if route is None:
        known = ", ".join(route.path for route in ROUTES)
        raise ValueError(f"{text} is not a route of the servers; allowed: {known}")
    values = {parameter.name: parameter.default for parameter in route.parameters}
    if question:
        given: set[str] = set()
        for pair in query.split("&"):
            name, _, value = pair.partition("=")
            parameter = next((p for p in route.parameters if p.name == name), None)
            if parameter is None or name in given:
                problem = "given twice" if parameter else "not a parameter of the route"
                takes = ", ".join(map(str, route.parameters)) or "none"
                raise ValueError(f"{text}: '{name}' is {problem}; {route.path} takes {takes}")
            number = int(value) if re.fullmatch(r"[0-9]{1,7}", value) else -1
            if not parameter.least <= number <= parameter.most:
                raise ValueError(f"{text}: {name}={value} is not allowed; allowed: {parameter}")
            given.add(name)
            values[name] = number
    return RouteCall(route, values)
