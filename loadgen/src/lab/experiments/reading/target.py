"""TARGET=: where a service that is not the lab's is, as a load engine in a container asks it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lab.errors import WordError
from lab.experiments.reading.settings import Settings
from lab.model.routes import THIS_MACHINE

WORD = "TARGET"
KEY = "load.target"
# Words that describe a server of the lab, or that need its management port.
EXCLUDED = ("SERVER", "ROUTE", "LAUNCHES", "RECORD")
_LOOPBACK = re.compile(r"localhost|127\.[0-9.]+|0\.0\.0\.0|\[::1?\]")
_URL = re.compile(
    r"(?P<host>\[[0-9a-f:.]+\]|[A-Za-z0-9][A-Za-z0-9._-]*)(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<route>/[A-Za-z0-9._~:/?@!&()*+,;=%-]*)?"
)
# The agent that marks a trial takes no longer address.
LONGEST = 200
PORTS = {"http": 80, "https": 443}
SHAPE = "http(s)://host[:port]/path?query, of letters, digits and ._~:/?@!&()*+,;=%-"


@dataclass(frozen=True, slots=True)
class Target:
    """`url` is scheme, host and port, `server` the host in small letters, `route` path and query.
    `note` tells the user how the given address was changed."""

    url: str
    server: str
    route: str
    note: str | None = None


def target(text: str) -> Target:
    """The rule of the word. Raises ValueError as the rules of `rules` do."""
    scheme, separator, rest = text.partition("://")
    found = _URL.fullmatch(rest) if scheme in PORTS and separator else None
    if found is None:
        raise ValueError(f"{text} is not an address; allowed: {SHAPE}, at most {LONGEST}")
    host, port = found["host"].lower(), int(found["port"] or PORTS[scheme])
    if not 1 <= port <= 65535:
        raise ValueError(f"{text}: port {port} is not allowed; allowed: 1..65535")
    note = None
    if _LOOPBACK.fullmatch(host):
        note = (
            f"TARGET: {host} is this machine, not the driver's container: loaded as "
            f"{scheme}://{THIS_MACHINE}:{port}"
        )
        host = THIS_MACHINE
    if host.startswith("["):
        raise ValueError(f"{text} is not allowed; allowed: a host name or an IPv4 address")
    url, route = f"{scheme}://{host}:{port}", found["route"] or "/"
    if len(url + route) > LONGEST:
        raise ValueError(
            f"{text} is not allowed: {len(url + route)} characters as it is asked ({url}/…); "
            f"allowed: at most {LONGEST}"
        )
    return Target(url, host, route, note)


def given_target(settings: Settings) -> Target | None:
    """The target, if one was given. Raises WordError."""
    return settings.one(KEY, target, None)


def refuse_beside(words: Mapping[str, str], verb: str) -> None:
    """Raises WordError for words that exclude TARGET, and for an open load without a rate."""
    if WORD not in words:
        return
    for word in EXCLUDED:
        if word in words:
            raise WordError(
                f"{verb}: {word} with {WORD} is not allowed: {WORD} is the whole address of a "
                f"service that is not the lab's; allowed beside it: all other words of make {verb}"
            )
    rate, mode = words.get("RATE"), words.get("MODE", "closed")
    if rate == "auto" or (rate is None and mode in ("open", "both")):
        given = "RATE=auto" if rate else f"MODE={mode} without RATE"
        raise WordError(
            f"{verb}: {given} is not allowed with {WORD}: the lab does not know what the service "
            "waits for; allowed: RATE=n requests per second, or MODE=closed"
        )


def refuse(words: Mapping[str, str], verb: str) -> None:
    """Raises WordError where TARGET is given: it is not a word of this verb."""
    if WORD in words:
        raise WordError(f"{verb}: {WORD} is not allowed; allowed: make bench and make capacity")
