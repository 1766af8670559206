"""Rules for single values. Each rule takes the given text and returns its value.

A rule raises ValueError. The message begins with the given text and ends with the allowed values.
The caller puts the place before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.model import ARRIVALS, Arrivals
from lab.model.routes import Route

MAX_DURATION_S = 24 * 3600
MAX_RATE_RPS = 10_000_000
MAX_LAUNCHES = 100
MAX_CONNECTIONS = 1_000_000
# Descriptors a server needs besides those of requests: jars, listeners, management, probe.
SPARE_DESCRIPTORS = 1000
_DURATION = re.compile(r"([0-9]{1,6})(s|m|h)?")
_SECONDS = {"s": 1, None: 1, "m": 60, "h": 3600}
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?(e-?[0-9]{1,2})?")


@dataclass(frozen=True, slots=True)
class Shape:
    """The TOML type of a key, for people and as Python's types; `listed`: a list of them."""

    what: str
    types: tuple[type, ...]
    listed: bool = False


TEXT = Shape("a text", (str,))
TEXTS = Shape("a list of texts", (str,), listed=True)
WHOLE = Shape("a whole number", (int,))
WHOLES = Shape("a list of whole numbers", (int,), listed=True)
DECIMAL = Shape("a number", (int, float))
DURATION = Shape('a duration, as "15s" or "2m"', (str,))
RATE = Shape('"auto" or a whole number', (str, int))


@dataclass(frozen=True, slots=True)
class Rule[T]:
    """The rule for a key of a file: its TOML type, and how its text is read."""

    shape: Shape
    read: Callable[[str], T]

    def __call__(self, text: str) -> T:
        """The value. Raises ValueError."""
        return self.read(text)


def number(least: int, most: int) -> Rule[int]:
    def rule(text: str) -> int:
        if not re.fullmatch(r"0|[1-9][0-9]{0,8}", text) or not least <= int(text) <= most:
            raise ValueError(f"{text} is not allowed; allowed: {least}..{most}")
        return int(text)

    return Rule(WHOLE, rule)


def decimal(least: float, most: float) -> Rule[float]:
    def rule(text: str) -> float:
        if not _DECIMAL.fullmatch(text) or not least <= float(text) <= most:
            raise ValueError(f"{text} is not allowed; allowed: {least:g}..{most:g}")
        return float(text)

    return Rule(DECIMAL, rule)


def seconds(least: int) -> Rule[int]:
    """A duration, in seconds."""

    def rule(text: str) -> int:
        found = _DURATION.fullmatch(text)
        value = int(found[1]) * _SECONDS[found[2]] if found else -1
        if not least <= value <= MAX_DURATION_S:
            raise ValueError(
                f"{text} is not a duration; allowed: {least}s..24h in whole seconds, minutes or "
                "hours, as 15s or 2m"
            )
        return value

    return Rule(DURATION, rule)


def _rate(text: str) -> int | None:
    if text == "auto":
        return None
    if not re.fullmatch(r"[1-9][0-9]{0,7}", text) or int(text) > MAX_RATE_RPS:
        raise ValueError(
            f"{text} is not a rate; allowed: auto, or 1..{MAX_RATE_RPS} requests per second"
        )
    return int(text)


# Requests per second; None for auto.
rate = Rule(RATE, _rate)


def run_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*", text):
        raise ValueError(f"{text} is not a run; allowed: a folder of results/, or latest")
    return text


def _arrivals(text: str) -> Arrivals:
    for one in ARRIVALS:
        if text == one:
            return one
    raise ValueError(f"{text} is not allowed; allowed: {', '.join(ARRIVALS)}")


# How the requests of an open load follow each other.
arrivals = Rule(TEXT, _arrivals)


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(
            f"{text} is not allowed; allowed: up to 40 of a-z, 0-9 and '-', starting with a "
            "letter or digit"
        )
    return text


# The name of a run, of an arm or of a case.
name = Rule(TEXT, _name)


def one_of(words: Sequence[str], what: str = "allowed") -> Rule[str]:
    """One of a few words. `what` completes the refusal: other words are not …"""

    def rule(text: str) -> str:
        if text not in words:
            raise ValueError(f"{text} is not {what}; allowed: {', '.join(words)}")
        return text

    return Rule(TEXT, rule)


def server(servers: Sequence[str]) -> Rule[str]:
    return one_of(servers, "a server of the lab")


def max_concurrency(route: Route, file_limit: int) -> int:
    """How many connections a server can hold: one descriptor in, and one more per request
    where the route opens a connection or a file."""
    return (file_limit - SPARE_DESCRIPTORS) // route.descriptors


def connections(most: int) -> Rule[int]:
    """A number of connections. `read_load` checks whether the machine holds them."""

    def rule(text: str) -> int:
        if not re.fullmatch(r"[1-9][0-9]{0,6}", text):
            raise ValueError(f"{text} is not a number of connections; allowed: 1..{most}")
        return int(text)

    return Rule(WHOLE, rule)


def held(route: Route, file_limit: int) -> str:
    """For a message: how many connections this machine holds on the route, and why."""
    each = "one" if route.descriptors == 1 else f"two, as each opens a {route.opens},"
    return (
        f"1..{max_concurrency(route, file_limit)} on {route.path} ({file_limit} open files per "
        f"process, {each} per connection)"
    )
