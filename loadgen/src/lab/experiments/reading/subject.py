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

import dataclasses
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lab.errors import WordError
from lab.experiments.reading.settings import Settings
from lab.experiments.reading.target import IN_A_HEADER, KEY, Target, secret_in, target
from lab.judge.resources import RESOURCES
from lab.model import Expect, Experiment, OwnLever, Request
from lab.model.address import LONGEST, SHAPE, path_problem
from lab.store.records import from_json

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_METHOD = re.compile(r"(?!CONNECT$)[A-Z]{1,20}")
# RFC 9110, 5.1 and 5.5. What follows from the body is pacer's to say.
_FIELD = re.compile(r"(?!(?i:content-length|transfer-encoding)$)[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
# What pacer looks for at most in a body, in bytes.
_LONGEST_TEXT = 1000


@dataclass(frozen=True, slots=True)
class Subject:
    """The keys of a file."""

    url: str
    request: tuple[Request, ...]
    ready: str | None = None
    levers: Mapping[str, OwnLever] = field(default_factory=dict)


def given_target(settings: Settings, folder: Path | None) -> Target | None:
    """What TARGET= names, if it was given; `folder` holds the subjects. Raises WordError."""

    def named(text: str) -> Target:
        return _subject(text, folder) if folder and _NAME.fullmatch(text) else target(text)

    return settings.one(KEY, named, None)


def with_secrets(run: str, experiment: Experiment, folder: Path) -> Experiment:
    """A stored experiment with the secret headers of its requests, which no run stores, as its
    subject has them now. Raises WordError where that has other requests by now."""
    names = sorted({name for request in experiment.requests for name in request.secrets})
    if not names:
        return experiment
    path = folder / f"{experiment.subject}.toml"
    try:
        requests = _subject(str(experiment.subject), folder).requests if path.exists() else ()
    except ValueError as failure:
        raise WordError(f"run: RESUME={run}: {failure}") from None
    if tuple(request.stored for request in requests) != experiment.requests:
        raise WordError(
            f"run: RESUME={run}: no run stores the values of {', '.join(names)}, and subjects/"
            f"{path.name} is gone or has other requests than when the run began; allowed: the file "
            "with the same requests"
        )
    return dataclasses.replace(experiment, requests=requests)


def _subject(name: str, folder: Path) -> Target:
    """Raises ValueError for a file that is not there, or is not as it is to be."""
    file = f"subjects/{name}.toml"
    try:
        told = from_json(Subject, tomllib.loads((folder / f"{name}.toml").read_text("utf-8")))
        of = target(told.url)
    except FileNotFoundError:
        there = "".join(f", {path.stem}" for path in sorted(folder.glob("*.toml")))
        raise ValueError(f"{name}: there is no {file}; allowed: {SHAPE}{there}") from None
    except (OSError, ValueError, RecursionError) as failure:
        raise ValueError(f"{name}: {file}: {failure}".replace("\n", " ")) from None
    first = told.request[0] if told.request else Request("")
    ready = told.ready or (first.path if first.method == "GET" else None)
    for wrong in _problems(told, of, ready):
        raise ValueError(f"{name}: {file}: {wrong}")
    of = dataclasses.replace(of, levers=told.levers, subject=name)
    if told.request == (Request(first.path),):
        return dataclasses.replace(of, route=first.path, ready=ready)
    single = f"{first.method} {first.path}" if len(told.request) == 1 else name
    return dataclasses.replace(of, route=single, ready=ready, requests=told.request)


def _problems(told: Subject, of: Target, ready: str | None) -> Iterator[str]:
    if of.route != "/" or told.url.endswith("/"):
        yield f"url={told.url} is not allowed; allowed: scheme, host and port, without a path"
    if not told.request:
        yield "it has no [[request]]; allowed: one and more"
    for number, one in enumerate(told.request, 1):
        where = f"request {number}"
        if problem := path_problem(one.path):
            yield f"{where}: path={one.path} is not a path: {problem}"
        if len(of.url + one.path) > LONGEST:
            yield f"{where}: path={one.path} is longer than {LONGEST} with its host"
        if not _METHOD.fullmatch(one.method):
            yield f"{where}: method={one.method} is not allowed; allowed: capital letters"
        if secret := secret_in(one.path):
            yield f"{where}: {secret} in a path {IN_A_HEADER}"
        for header, value in one.headers.items():
            if not _FIELD.fullmatch(header) or not _VALUE.fullmatch(value):
                yield f"{where}: the header {header!r}, or its value, is not allowed"
        if not 0 < one.weight < float("inf"):
            yield f"{where}: weight={one.weight:g} is not allowed; allowed: above 0"
        if one.expect is not None:
            yield from (f"{where}: expect: {wrong}" for wrong in _wrong(one, one.expect))
    if ready is None:
        yield "ready is missing; allowed: a path that answers GET, as the first request does not"
    elif problem := path_problem(ready):
        yield f"ready={ready} is not a path: {problem}"
    for resource, lever in told.levers.items():
        if resource not in RESOURCES:
            yield f"levers: {resource} is not a resource; allowed: {', '.join(RESOURCES)}"
        yield from (f"levers: {resource}: {wrong}" for wrong in lever.problems())
    variables = Counter(one.variable for one in told.levers.values() if one.variable)
    yield from (f"levers: {one} is in {n} of them" for one, n in variables.items() if n > 1)


def _wrong(of: Request, expect: Expect) -> Iterator[str]:
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
    if of.method == "HEAD":
        yield "body_contains is not allowed: an answer to HEAD has no body"
    if any(header.lower() == "accept-encoding" for header in of.headers):
        yield "body_contains is not allowed beside Accept-Encoding: the body may come compressed"
