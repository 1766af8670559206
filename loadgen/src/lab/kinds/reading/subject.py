"""TARGET=: an address, or the name of subjects/<name>.toml, which says what its load is made of.

url = "http://shop:8080"      # scheme, host and port
ready = "/health"             # answers GET when it is ready; the first request if not given
[[request]]
path = "/items?page=1"        # GET, without headers and body, of weight 1, unless told
weight = 9                    # of ten requests nine
[[request]]
method = "POST"
path = "/orders"
headers = {Content-Type = "application/json"}
body = '{"item": 7}'
expect = {status = 201, body_contains = '"order":'}      # any status below 400 unless told
[levers]                      # of a container of the lab: what lifts which resource, as it is now
"worker pool" = {variable = "POOL_SIZE", value = 20}
"garbage collection" = {variable = "JAVA_OPTS", value = 256, text = "-Xmx{}m", memory = "512m"}
"server CPU" = {cpus = 1}
"""

import copy
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from lab.errors import WordError
from lab.judge.resources import RESOURCES
from lab.kinds.reading.settings import Settings
from lab.kinds.reading.target import IN_A_HEADER, KEY, Target, secret_in, target
from lab.model import Expect, Experiment, OwnLever, Record, Request
from lab.model.address import LONGEST, SHAPE, path_problem
from lab.store.records import from_json

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_METHOD = re.compile(r"(?!CONNECT$)[A-Z]{1,20}")
# RFC 9110, 5.1 and 5.5. What follows from the body is pacer's to say.
_FIELD = re.compile(r"(?!(?i:content-length|transfer-encoding)$)[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
# What pacer looks for at most in a body, in bytes.
_LONGEST_TEXT = 1000


class Subject(Record):
    """The keys of a file."""

    url: str
    request: tuple[Request, ...]
    ready: str | None = None
    levers: Mapping[str, OwnLever] = {}


def given_target(settings: Settings, folder: Path | None) -> Target | None:
    """What TARGET= names, if it was given; `folder` holds the subjects. Raises WordError."""
    given = settings.get(KEY)
    if given is None:
        return None
    text = str(given.value)
    with settings.checked(KEY):
        return _subject(text, folder) if folder and _NAME.fullmatch(text) else target(text)


def with_secrets(run: str, experiment: Experiment, folder: Path) -> Experiment:
    """A stored experiment with the secret headers of its requests, which no run stores, as its
    subject has them now. Raises WordError where that has other requests by now."""
    names = sorted({name for request in experiment.requests for name in request.secrets})
    if not names:
        return experiment
    path = folder / f"{experiment.subject}.toml"
    try:
        known = _subject(str(experiment.subject), folder).requests if path.exists() else ()
    except ValueError as failure:
        raise WordError(f"run: RESUME={run}: {failure}") from None
    if tuple(request.stored for request in known) != experiment.requests:
        raise WordError(
            f"run: RESUME={run}: no run stores the values of {', '.join(names)}, and subjects/"
            f"{path.name} is gone or has other requests than when the run began; allowed: the file "
            "with the same requests"
        )
    return copy.replace(experiment, requests=known)


def _subject(name: str, folder: Path) -> Target:
    """Raises ValueError for a file that is not there, or is not as it is to be."""
    file = f"subjects/{name}.toml"
    try:
        subject = from_json(Subject, tomllib.loads((folder / f"{name}.toml").read_text("utf-8")))
        address = target(subject.url)
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
        for problem in _of_request(request, address.url):
            yield f"request {number}: {problem}"
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
    if secret := secret_in(request.path):
        yield f"{secret} in a path {IN_A_HEADER}"
    for header, value in request.headers.items():
        if not _FIELD.fullmatch(header) or not _VALUE.fullmatch(value):
            yield f"the header {header!r}, or its value, is not allowed"
    if not 0 < request.weight < float("inf"):
        yield f"weight={request.weight:g} is not allowed; allowed: above 0"
    if request.expect is not None:
        yield from (f"expect: {problem}" for problem in _impossible(request, request.expect))


def _impossible(request: Request, expect: Expect) -> Iterator[str]:
    """Why no answer can be as expected."""
    if expect == Expect():
        yield "it is empty; allowed: status, body_contains, or both"
    for status in expect.statuses:
        if not 200 <= status <= 599:
            yield f"status={status} is not allowed; allowed: 200..599, or a list of such"
    text = expect.body_contains
    if text is None:
        return
    if not 0 < len(text.encode()) <= _LONGEST_TEXT:
        yield f"body_contains is not allowed; allowed: a text of 1 to {_LONGEST_TEXT} bytes"
    if request.method == "HEAD":
        yield "body_contains is not allowed: an answer to HEAD has no body"
    if any(header.lower() == "accept-encoding" for header in request.headers):
        yield "body_contains is not allowed beside Accept-Encoding: the body may come compressed"
