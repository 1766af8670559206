"""What a single value may be. Each rule takes the text as given and returns what it means.

A rule raises ValueError with a message that begins with what was given and ends with what is
allowed; who calls it puts the place before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from lab.model.routes import Route

ENGINES = ("wrk2", "oha", "wrk")
MAX_DURATION_S = 24 * 3600
MAX_RATE_RPS = 10_000_000
MAX_LAUNCHES = 100
# Descriptors a server needs besides those of requests: jars, listeners, management, probe.
SPARE_DESCRIPTORS = 1000
_DURATION = re.compile(r"([0-9]{1,6})(s|m|h)?")
_SECONDS = {"s": 1, None: 1, "m": 60, "h": 3600}
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?(e-?[0-9]{1,2})?")


def number(least: int, most: int) -> Callable[[str], int]:
    """A whole number."""

    def rule(text: str) -> int:
        if not re.fullmatch(r"0|[1-9][0-9]{0,8}", text) or not least <= int(text) <= most:
            raise ValueError(f"{text} is not allowed; allowed: {least}..{most}")
        return int(text)

    return rule


def decimal(least: float, most: float) -> Callable[[str], float]:
    """A number with or without decimals."""

    def rule(text: str) -> float:
        if not _DECIMAL.fullmatch(text) or not least <= float(text) <= most:
            raise ValueError(f"{text} is not allowed; allowed: {least:g}..{most:g}")
        return float(text)

    return rule


def seconds(least: int) -> Callable[[str], int]:
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

    return rule


def rate(text: str) -> int | None:
    """Requests per second; None for auto."""
    if text == "auto":
        return None
    if not re.fullmatch(r"[1-9][0-9]{0,7}", text) or int(text) > MAX_RATE_RPS:
        raise ValueError(
            f"{text} is not a rate; allowed: auto, or 1..{MAX_RATE_RPS} requests per second"
        )
    return int(text)


def name(text: str) -> str:
    """The name of a run, or of an arm."""
    if not _NAME.fullmatch(text):
        raise ValueError(
            f"{text} is not allowed; allowed: up to 40 of a-z, 0-9 and '-', starting with a "
            "letter or digit"
        )
    return text


def one_of(allowed: Sequence[str]) -> Callable[[str], str]:
    """One of a few words."""

    def rule(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"{text} is not allowed; allowed: {', '.join(allowed)}")
        return text

    return rule


def server(servers: Sequence[str]) -> Callable[[str], str]:
    """A server model that there is."""

    def rule(text: str) -> str:
        if text not in servers:
            raise ValueError(f"{text} is not a server of the lab; allowed: {', '.join(servers)}")
        return text

    return rule


def max_concurrency(route: Route, file_limit: int) -> int:
    """How many connections a server can hold: one descriptor in, and one more per request
    where the route opens a connection or a file."""
    return (file_limit - SPARE_DESCRIPTORS) // route.descriptors


def connections(most: int) -> Callable[[str], int]:
    """A number of connections. Whether the machine holds them is another question."""

    def rule(text: str) -> int:
        if not re.fullmatch(r"[1-9][0-9]{0,6}", text):
            raise ValueError(f"{text} is not a number of connections; allowed: 1..{most}")
        return int(text)

    return rule


def held(route: Route, file_limit: int) -> str:
    """What this machine holds on the route and why, for a message."""
    each = "one" if route.descriptors == 1 else f"two, as each opens a {route.opens},"
    return (
        f"1..{max_concurrency(route, file_limit)} on {route.path} ({file_limit} open files per "
        f"process, {each} per connection)"
    )
