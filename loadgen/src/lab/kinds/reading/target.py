"""TARGET=: where a service that is not the lab's is, as a load engine in a container asks it, and
what its load can be."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import replace
from dataclasses import dataclass, field

from lab.errors import WordError
from lab.kinds.reading.settings import Settings
from lab.model import Mode, OwnLever, Request
from lab.model.address import LONGEST, parse
from lab.model.routes import THIS_MACHINE

WORD, KEY = "TARGET", "target"
# Words that describe a server of the lab.
EXCLUDED = ("SERVER", "ROUTE")
_LOOPBACK = re.compile(r"localhost|127\.[0-9.]+|0\.0\.0\.0|\[::1?\]")
# A path is stored and shown as it is. A key is often none: /items?key=7.
_SECRET = re.compile("authorization|token|secret|password|api.?key", re.IGNORECASE)
IN_A_HEADER = "would be stored and shown with each trial; allowed: a header of a subject"


@dataclass(frozen=True, slots=True)
class Target:
    """`url` is scheme, host and port, `server` the host in small letters, `route` path and query.
    `note` tells the user how the given address was changed. Of a subject (`reading.subject`) the
    load is made of `requests`, if it is more than GET of the route; `route` is what they are
    called, the path `ready` answers when the service is, and `levers` are what the lab may change
    of its container, by resource; `subject` is its name."""

    url: str
    server: str
    route: str
    note: str | None = None
    ready: str | None = None
    requests: tuple[Request, ...] = ()
    levers: Mapping[str, OwnLever] = field(default_factory=dict)
    subject: str | None = None


def secret_in(path: str) -> str | None:
    """The parameter of a path's query that sounds secret, if there is one."""
    query = path.partition("?")[2]
    names = (pair.partition("=")[0] for pair in query.split("&"))
    return next(filter(_SECRET.search, names), None)


def target(text: str) -> Target:
    """The service at an address. Raises ValueError, whose message begins with the address."""
    given = address = parse(text)
    note = None
    if _LOOPBACK.fullmatch(given.host):
        address = replace(given, host=THIS_MACHINE)
        note = (
            f"TARGET: {given.host} is this machine, not the driver's container: loaded as "
            f"{address.url}"
        )
    if address.host.startswith("["):
        raise ValueError(f"{text} is not allowed; allowed: a host name or an IPv4 address")
    route = address.path or "/"
    if secret := secret_in(route):
        raise ValueError(f"{secret} in a path {IN_A_HEADER} (docs/your-own-service.md)")
    if len(address.url + route) > LONGEST:
        raise ValueError(
            f"{text} is not allowed: {len(address.url + route)} characters as it is asked "
            f"({address.url}/…); allowed: at most {LONGEST}"
        )
    return Target(address.url, address.host, route, note)


def refuse_beside(words: Mapping[str, str], verb: str) -> None:
    """Raises WordError for words that exclude TARGET."""
    for word in EXCLUDED:
        if WORD in words and word in words:
            raise WordError(
                f"{verb}: {word} with {WORD} is not allowed: {WORD} is the whole address of a "
                "service that is not the lab's"
            )


def modes(settings: Settings, wanted: tuple[Mode, ...]) -> tuple[Mode, ...]:
    """Those of `wanted` that a load of the target can have: an open one needs a rate of the
    user's, as the lab does not know what the service waits for. Raises WordError where the user
    asked for an open load without, or where there is no other."""
    rate = settings.get("load.rate")
    if "open" not in wanted or (rate and rate.value != "auto"):
        return wanted
    chosen = settings.by_user("load.rate") or settings.by_user("load.modes")
    if "closed" in wanted and not chosen:
        return ("closed",)
    raise WordError(
        f"{settings.place}: an open load of a {WORD} needs a rate, as the lab does not know what "
        f"the service waits for; allowed: RATE=n requests per second, or MODE=closed where the "
        "kind has closed loads"
    )


def launches(settings: Settings, count: int, server: str, own: Sequence[str]) -> int:
    """How many fresh containers of the service at `server` are measured: those that were asked for
    if the lab can restart it, as one of its `own` containers; none where only a file asks for
    them. Raises WordError where the user does."""
    if server in own or not count:
        return count
    if settings.by_user("repeat.launches"):
        raise settings.refuse(
            "repeat.launches",
            f"with {WORD} is not allowed: {server} is no container of this lab, so it cannot be "
            "restarted; allowed: a service of compose.override.yaml",
        )
    return 0


def refuse(words: Mapping[str, str], verb: str) -> None:
    """Raises WordError where TARGET is given: it is not a word of this verb."""
    if WORD in words:
        raise WordError(
            f"{verb}: {WORD} is not allowed; allowed: make bench, make capacity, make explain and "
            "make run"
        )
