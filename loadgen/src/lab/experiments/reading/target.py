"""TARGET=: where a service that is not the lab's is, as a load engine in a container asks it, and
what its load can be."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lab.errors import WordError
from lab.experiments.reading.settings import Settings, Word
from lab.model import Mode, OwnLever, Request
from lab.model.address import LONGEST, parse
from lab.model.routes import THIS_MACHINE

WORD = "TARGET"
KEY = "load.target"
# Of the kinds whose load goes to a service of the user's as well as to a server.
WORDS = {WORD: Word(KEY)}
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
    """The rule of the word. Raises ValueError as the rules of `rules` do."""
    given = found = parse(text)
    note = None
    if _LOOPBACK.fullmatch(given.host):
        found = replace(given, host=THIS_MACHINE)
        note = (
            f"TARGET: {given.host} is this machine, not the driver's container: loaded as "
            f"{found.url}"
        )
    if found.host.startswith("["):
        raise ValueError(f"{text} is not allowed; allowed: a host name or an IPv4 address")
    route = found.path or "/"
    if secret := secret_in(route):
        raise ValueError(f"{secret} in a path {IN_A_HEADER} (docs/your-own-service.md)")
    if len(found.url + route) > LONGEST:
        raise ValueError(
            f"{text} is not allowed: {len(found.url + route)} characters as it is asked "
            f"({found.url}/…); allowed: at most {LONGEST}"
        )
    return Target(found.url, found.host, route, note)


def refuse_beside(words: Mapping[str, str], verb: str) -> None:
    """Raises WordError for words that exclude TARGET."""
    for word in EXCLUDED:
        if WORD in words and word in words:
            raise WordError(
                f"{verb}: {word} with {WORD} is not allowed: {WORD} is the whole address of a "
                f"service that is not the lab's; allowed beside it: all other words of make {verb}"
            )


def modes(settings: Settings, wanted: tuple[Mode, ...]) -> tuple[Mode, ...]:
    """Those of `wanted` that a load of the target can have: an open one needs a rate of the
    user's, as the lab does not know what the service waits for. Raises WordError where the user
    asked for an open load without, or where there is no other."""
    rate, given = settings.get("load.rate"), settings.get("load.modes")
    if "open" not in wanted or (rate is not None and rate.text != "auto"):
        return wanted
    if rate is not None and rate.by_user:
        what = f"RATE=auto is not allowed with {WORD}"
    elif given is not None and given.by_user:
        what = f"MODE={given.text} without RATE is not allowed with {WORD}"
    elif "closed" in wanted:
        return ("closed",)
    else:
        what = f"{WORD} without RATE is not allowed"
    other = ", or MODE=closed" if given is not None or "closed" in wanted else ""
    raise WordError(
        f"{settings.place}: {what}: the lab does not know what the service waits for; allowed: "
        f"RATE=n requests per second{other}"
    )


def launches(settings: Settings, given: int, server: str, own: Sequence[str]) -> int:
    """How many fresh containers of the service at `server` are measured: those that were `given`
    if the lab can restart it, as one of its `own` containers; none where only a file asks for
    them. Raises WordError where the user does."""
    asked = settings.get("repeat.launches")
    if server in own or not given or asked is None:
        return given
    if asked.by_user:
        raise asked.refuse(
            f"{asked.text} with {WORD} is not allowed: {server} is no container of this lab, so "
            "nobody can restart it; allowed: a service of compose.override.yaml"
        )
    return 0


def refuse(words: Mapping[str, str], verb: str) -> None:
    """Raises WordError where TARGET is given: it is not a word of this verb."""
    if WORD in words:
        raise WordError(
            f"{verb}: {WORD} is not allowed; allowed: make bench, make capacity, make explain and "
            "make run"
        )
