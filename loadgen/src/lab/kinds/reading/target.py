"""TARGET=: an address, or the name of subjects/<name>.toml, which says what its load is made of.

url = "http://shop:8080"      # scheme, host and port
ready = "/health"             # answers GET when it is ready; the first request if not given
[[request]]
path = "/items?page=1"        # GET, without headers and body, of weight 1, unless given
weight = 9                    # of ten requests nine
[[request]]
method = "POST"
path = "/orders"
headers = {Content-Type = "application/json"}
body = '{"item": 7}'
expect = {status = 201, body_contains = '"order":'}      # any status below 400 unless given
[levers]                      # of a container of the lab: what lifts which resource, as it is now
"worker pool" = {variable = "POOL_SIZE", value = 20}
"garbage collection" = {variable = "JAVA_OPTS", value = 256, text = "-Xmx{}m", memory = "512m"}
"server CPU" = {cpus = 1}
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.errors import WordError
from lab.judge.resources import RESOURCES
from lab.kinds.reading.settings import Settings
from lab.model import Expect, Experiment, Mode, OwnLever, Record, Request
from lab.model.address import LONGEST, SHAPE, parse, path_problem
from lab.model.routes import THIS_MACHINE
from lab.store.records import from_json

WORD, KEY = "TARGET", "target"
# Words that describe a server of the lab.
EXCLUDED = ("SERVER", "ROUTE")
_LOOPBACK = re.compile(r"localhost|127\.[0-9.]+|0\.0\.0\.0|\[::1?\]")
# A path is stored and shown as it is. A key is often none: /items?key=7.
_SECRET = re.compile("authorization|token|secret|password|api.?key", re.IGNORECASE)
_IN_A_HEADER = "would be stored and shown with each trial; allowed: a header of a subject"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_METHOD = re.compile(r"(?!CONNECT$)[A-Z]{1,20}")
# RFC 9110, 5.1 and 5.5. What follows from the body is pacer's to say.
_FIELD = re.compile(r"(?!(?i:content-length|transfer-encoding)$)[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
# What pacer looks for at most in a body, in bytes.
_LONGEST_TEXT = 1000


@dataclass(frozen=True, slots=True)
class Target:
    """A service that is not the lab's. `url` is scheme, host and port, `server` the host in small
    letters, `route` path and query. `note` tells the user how the given address was changed. Of a
    subject the load is made of `requests`, if it is more than GET of the route; `route` is what
    they are called, the path `ready` answers when the service is, and `levers` are what the lab may
    change of its container, by resource; `subject` is its name."""

    url: str
    server: str
    route: str
    note: str | None = None
    ready: str | None = None
    requests: tuple[Request, ...] = ()
    levers: Mapping[str, OwnLever] = field(default_factory=dict)
    subject: str | None = None


class Subject(Record):
    """The keys of a file."""

    url: str
    request: tuple[Request, ...]
    ready: str | None = None
    levers: Mapping[str, OwnLever] = {}


def given(settings: Settings, folder: Path | None) -> Target | None:
    """What TARGET= names, if it was given; `folder` holds the subjects. Raises WordError."""
    word = settings.get(KEY)
    if word is None:
        return None
    text = str(word.value)
    with settings.checked(KEY):
        return _subject(text, folder) if folder and _NAME.fullmatch(text) else _at(text)


def refuse(words: Mapping[str, str], verb: str) -> None:
    """Raises WordError where TARGET is given: it is not a word of this verb."""
    if WORD in words:
        raise WordError(
            f"{verb}: {WORD} is not allowed; allowed: make bench, make capacity, make explain and "
            "make run"
        )


def refuse_beside(words: Mapping[str, str], verb: str) -> None:
    """Raises WordError for words that exclude TARGET."""
    for word in EXCLUDED:
        if WORD in words and word in words:
            raise WordError(
                f"{verb}: {word} with {WORD} is not allowed: {WORD} is the whole address of a "
                "service that is not the lab's"
            )


def refuse_jvm(settings: Settings, key: str, server: str, own: Sequence[str]) -> None:
    """Raises WordError for a setting that takes another JVM, where the lab cannot make one: the
    service is none of its `own` containers."""
    if server not in own:
        what = f"with {WORD} is not allowed: {server} is no container of this lab, so its JVM stays"
        raise settings.refuse(key, f"{what}; allowed: a service of compose.override.yaml")


def launches(settings: Settings, count: int, server: str, own: Sequence[str]) -> int:
    """How many fresh containers of the service are measured: none where only a file asks for them,
    and the lab cannot restart it. Raises WordError where the user does."""
    if count and settings.by_user("repeat.launches"):
        refuse_jvm(settings, "repeat.launches", server, own)
    return count if server in own else 0


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


def with_secrets(run: str, experiment: Experiment, folder: Path) -> Experiment:
    """A stored experiment with the secret headers of its requests, which no run stores, as its
    subject has them now. Raises WordError where that has other requests or another address by
    now: a stored run may come from anybody."""
    names = sorted({name for request in experiment.requests for name in request.secrets})
    if not names:
        return experiment
    path = folder / f"{experiment.subject}.toml"
    try:
        known = _subject(str(experiment.subject), folder) if path.exists() else None
    except ValueError as failure:
        raise WordError(f"run: RESUME={run}: {failure}") from None
    same = known is not None and known.url == experiment.target
    requests = known.requests if known is not None and same else ()
    if tuple(request.stored for request in requests) != experiment.requests:
        raise WordError(
            f"run: RESUME={run}: no run stores the values of {', '.join(names)}, and subjects/"
            f"{path.name} is gone or has another address or other requests than when the run "
            "began; allowed: the file as it was"
        )
    return copy.replace(experiment, requests=requests)


def _at(text: str) -> Target:
    """The service at an address. Raises ValueError, whose message begins with the address."""
    note, address = None, parse(text)
    if _LOOPBACK.fullmatch(address.host):
        here, address = address.host, copy.replace(address, host=THIS_MACHINE)
        note = (
            f"TARGET: {here} is this machine, not the driver's container: loaded as {address.url}"
        )
    if address.host.startswith("["):
        raise ValueError(f"{text} is not allowed; allowed: a host name or an IPv4 address")
    route = address.path or "/"
    if secret := _secret_in(route):
        raise ValueError(f"{secret} in a path {_IN_A_HEADER} (docs/your-own-service.md)")
    if len(address.url + route) > LONGEST:
        raise ValueError(
            f"{text} is not allowed: {len(address.url + route)} characters as it is asked "
            f"({address.url}/…); allowed: at most {LONGEST}"
        )
    return Target(address.url, address.host, route, note)


def _secret_in(path: str) -> str | None:
    """The parameter of a path's query that sounds secret, if there is one."""
    names = (pair.partition("=")[0] for pair in path.partition("?")[2].split("&"))
    return next(filter(_SECRET.search, names), None)


def _subject(name: str, folder: Path) -> Target:
    """Raises ValueError for a file that is not there, or is not as it is to be."""
    file = f"subjects/{name}.toml"
    try:
        subject = from_json(Subject, tomllib.loads((folder / f"{name}.toml").read_text("utf-8")))
        address = _at(subject.url)
    except FileNotFoundError:
        there = "".join(f", {path.stem}" for path in sorted(folder.glob("*.toml")))
        raise ValueError(f"{name}: there is no {file}; allowed: {SHAPE}{there}") from None
    except (OSError, ValueError, RecursionError) as failure:
        raise ValueError(f"{name}: {file}: {failure}".replace("\n", " ")) from None
    first = subject.request[0] if subject.request else Request("")
    ready = subject.ready or (first.path if first.method == "GET" else None)
    for problem in _problems(subject, address, ready):
        raise ValueError(f"{name}: {file}: {problem}")
    address = copy.replace(address, ready=ready, levers=subject.levers, subject=name)
    if subject.request == (Request(first.path),):
        return copy.replace(address, route=first.path)
    route = first.name if len(subject.request) == 1 else name
    return copy.replace(address, route=route, requests=subject.request)


def _problems(subject: Subject, address: Target, ready: str | None) -> Iterator[str]:
    if address.route != "/" or subject.url.endswith("/"):
        yield f"url={subject.url} is not allowed; allowed: scheme, host and port, without a path"
    if not subject.request:
        yield "it has no [[request]]; allowed: one and more"
    for number, request in enumerate(subject.request, 1):
        problems = (*_of_request(request, address.url), *_of_expect(request))
        yield from (f"request {number}: {problem}" for problem in problems)
    if ready is None:
        yield "ready is missing; allowed: a path that answers GET, as the first request does not"
    elif wrong := path_problem(ready):
        yield f"ready={ready} is not a path: {wrong}"
    for resource in subject.levers:
        if resource not in RESOURCES:
            yield f"levers: {resource} is not a resource; allowed: {', '.join(RESOURCES)}"
    variables = Counter(lever.variable for lever in subject.levers.values() if lever.variable)
    yield from (f"levers: {name} is in {n} of them" for name, n in variables.items() if n > 1)


def _of_request(request: Request, url: str) -> Iterator[str]:
    if problem := path_problem(request.path):
        yield f"path={request.path} is not a path: {problem}"
    if len(url + request.path) > LONGEST:
        yield f"path={request.path} is longer than {LONGEST} with its host"
    if not _METHOD.fullmatch(request.method):
        yield f"method={request.method} is not allowed; allowed: capital letters"
    if secret := _secret_in(request.path):
        yield f"{secret} in a path {_IN_A_HEADER}"
    for header, value in request.headers.items():
        if not _FIELD.fullmatch(header) or not _VALUE.fullmatch(value):
            yield f"the header {header!r}, or its value, is not allowed"
    if not 0 < request.weight < float("inf"):
        yield f"weight={request.weight:g} is not allowed; allowed: above 0"


def _of_expect(request: Request) -> Iterator[str]:
    """Why no answer can be as expected."""
    expect = request.expect or Expect(200)
    text = "-" if expect.body_contains is None else expect.body_contains
    if expect == Expect():
        yield "expect: it is empty; allowed: status, body_contains, or both"
    for status in expect.statuses:
        if not 200 <= status <= 599:
            yield f"expect: status={status} is not allowed; allowed: 200..599, or a list of such"
    if not 0 < len(text.encode()) <= _LONGEST_TEXT:
        yield f"expect: body_contains is not allowed; allowed: a text of 1 to {_LONGEST_TEXT} bytes"
    elif expect.body_contains and request.method == "HEAD":
        yield "expect: body_contains is not allowed: an answer to HEAD has no body"
    elif expect.body_contains and "accept-encoding" in map(str.lower, request.headers):
        yield (
            "expect: body_contains is not allowed beside Accept-Encoding: the body may come "
            "compressed"
        )
