"""TARGET=<name>: what subjects/<name>.toml says of a service of the user's own."""

import copy
import json
import re
from pathlib import Path

import pytest

from kinds.conftest import refusal
from lab.kinds.plans import of_verb
from lab.kinds.reading import Here, with_secrets
from lab.model import NOT_STORED, Expect, Experiment, Request
from lab.store.records import from_json, json_text, to_json
from support.repo import REPO

SECRET = "Bearer 5ecret"
MIX = (
    f'path = "/x"\nheaders = {{Authorization = "{SECRET}", Accept = "a"}}',
    'method = "POST"\npath = "/y"\nheaders = {X-Api-Key = "k5ecret"}',
)
X, READY = '[[request]]\npath = "/x"\n', 'ready = "/"\n'


def bench(folder: Path, name: str, **words: str) -> Experiment:
    here = Here(("fixed-pool",), 20_000, subjects=folder)
    found, _ = of_verb("bench", {"TARGET": name, "CONC": "5", **words}, here)
    return found


def written(folder: Path, *requests: str, url: str = "http://shop:8080", more: str = "") -> Path:
    tables = "".join(f"[[request]]\n{one}\n" for one in requests)
    (folder / "shop.toml").write_text(f'url = "{url}"\n{more}\n{tables}')
    return folder


def test_the_example_is_a_mix_of_requests_under_its_name() -> None:
    of = bench(REPO / "subjects", "example")
    assert (of.target, of.servers, of.routes) == (
        "http://my-service:8080",
        ("my-service",),
        ("example",),
    )
    assert of.ready == "/health"
    assert of.requests == (
        Request("/items?page=1", weight=9),
        Request(
            "/orders",
            "POST",
            {"Content-Type": "application/json"},
            '{"item": 7}',
            expect=Expect(201, '"order":'),
        ),
    )


def test_one_get_is_a_load_for_any_engine(tmp_path: Path) -> None:
    of = bench(written(tmp_path, 'path = "/x?a=1"'), "shop", ENGINE="wrk2")
    assert (of.routes, of.requests, of.ready) == (("/x?a=1",), (), "/x?a=1")


@pytest.mark.parametrize(
    ("keys", "route", "request_", "ready", "wrk2"),
    [
        (
            'method = "PUT"',
            "PUT /x",
            Request("/x", "PUT"),
            "/",
            "wrk2 sends GET of one path only, and PUT /x is more",
        ),
        (
            "expect = {status = [200, 404]}",
            "GET /x",
            Request("/x", expect=Expect((200, 404))),
            "/x",
            "wrk2 checks no answers, and GET /x expects some; allowed",
        ),
    ],
    ids=["another method", "expected answers"],
)
def test_what_is_more_than_a_get_is_for_the_engine_that_can(
    tmp_path: Path, keys: str, route: str, request_: Request, ready: str, wrk2: str
) -> None:
    more = "" if ready == "/x" else f'ready = "{ready}"'
    folder = written(tmp_path, f'path = "/x"\n{keys}', more=more)
    of = bench(folder, "shop")
    assert (of.routes, of.requests, of.ready) == ((route,), (request_,), ready)
    assert wrk2 in refusal(bench, folder, "shop", ENGINE="wrk2")
    # As a run's manifest keeps it.
    assert from_json(Experiment, to_json(of)) == of


def test_secret_headers_are_read_again_and_not_stored(tmp_path: Path) -> None:
    folder = written(tmp_path, *MIX)
    (tmp_path / "other.toml").write_text((tmp_path / "shop.toml").read_text())
    began = bench(folder, "shop")
    assert began.requests[0].headers == {"Authorization": SECRET, "Accept": "a"}
    kept = json_text(began)
    assert "5ecret" not in kept
    stored = from_json(Experiment, json.loads(kept))
    assert stored.requests[0].headers == {"Authorization": NOT_STORED, "Accept": "a"}
    # Another token by now, as one ends; and a file of the same requests under another name.
    written(folder, *MIX[:1], MIX[1].replace("k5ecret", "another"))
    again = with_secrets("run", stored, folder)
    assert again.requests[0].headers["Authorization"] == SECRET
    assert again.requests[1].headers["X-Api-Key"] == "another"
    assert copy.replace(again, requests=stored.requests) == stored
    # A run without secrets needs no file.
    stored = bench(written(tmp_path, 'path = "/x"\nheaders = {Accept = "a"}'), "shop")
    assert with_secrets("run", stored, tmp_path / "gone") == stored


@pytest.mark.parametrize(
    ("requests", "says"),
    [
        ((), "subjects/shop.toml is gone or has other requests"),
        (('path = "/x"', MIX[1]), "has other requests than when the run began"),
        ((MIX[0].replace("Authorization", "Cookie"), MIX[1]), "other requests"),
        ((MIX[0],), "the values of Authorization, X-Api-Key, and subjects/shop.toml is"),
        ((MIX[0].replace('"a"', '"b"'), MIX[1]), "other requests"),
    ],
)
def test_a_run_without_its_secrets_is_refused(
    tmp_path: Path, requests: tuple[str, ...], says: str
) -> None:
    stored = from_json(Experiment, to_json(bench(written(tmp_path, *MIX), "shop")))
    (tmp_path / "shop.toml").unlink()
    if requests:
        written(tmp_path, *requests)
    said = refusal(with_secrets, "20260101T000000Z-x", stored, tmp_path)
    assert said.startswith("run: RESUME=20260101T000000Z-x: ")
    assert says in said
    assert "5ecret" not in said


def test_what_is_expected_is_a_status_or_some_of_them() -> None:
    assert [Expect(404).takes(status) for status in (200, 404)] == [False, True]
    assert [Expect((200, 404)).takes(status) for status in (200, 404, 500)] == [True, True, False]
    assert [Expect(body_contains="a").takes(status) for status in (200, 400)] == [True, False]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "required field `request`"),
        ('[[request]]\npath = "x"', "request 1: path=x is not a path"),
        (f'{X}[[request]]\npath = "/y"\nmethod = "get"', "request 2: method=get is not allowed"),
        (f'{READY}{X}method = "CONNECT"', "method=CONNECT is not allowed"),
        (f"{X}weight = 0", "weight=0 is not allowed; allowed: above 0"),
        (f'{X}weight = "many"', "Expected `float`"),
        (f"{X}wight = 1", "unknown field `wight`"),
        (f'{X}headers = {{"a b" = "c"}}', "request 1: the header 'a b', or its value"),
        (f'{X}headers = {{a = "b\\nc"}}', "request 1: the header 'a', or its value"),
        (
            '[[request]]\npath = "/x?a=1&access_token=c"',
            "request 1: access_token in a path would be stored",
        ),
        (f'{X}headers = {{content-Length = "1"}}', "the header 'content-Length'"),
        (f'{X}method = "POST"', "ready is missing"),
        (f"{X}expect = {{}}", "request 1: expect: it is empty; allowed: status, body_"),
        (f"{X}expect = {{status = []}}", "expect: it is empty"),
        (f"{X}expect = {{status = 99}}", "expect: status=99 is not allowed; allowed: 2"),
        (f"{X}expect = {{status = [200, 600]}}", "status=600 is not allowed"),
        (f'{X}expect = {{status = "ok"}}', "Expected `int | array`"),
        (f'{X}expect = {{body = "ok"}}', "unknown field `body`"),
        (f'{X}expect = {{body_contains = ""}}', "a text of 1 to 1000 bytes"),
        (f'{X}expect = {{body_contains = "{"é" * 501}"}}', "of 1 to 1000 bytes"),
        (
            f'{READY}{X}method = "HEAD"\nexpect = {{body_contains = "a"}}',
            "an answer to HEAD has no body",
        ),
        (
            f'{X}headers = {{accept-encoding = "br"}}\nexpect = {{body_contains = "a"}}',
            "beside Accept-Encoding: the body may come compressed",
        ),
        (f"levers = {{pool = {{cpus = 1}}}}\n{X}", "levers: pool is not a resource; allowed: a"),
        (f'levers = {{"server CPU" = {{}}}}\n{X}', "it is empty; allowed: variable with value"),
        (f'levers = {{"server CPU" = {{cpu = 1}}}}\n{X}', "unknown field `cpu`"),
        (
            'levers = {"worker pool" = {variable = "A", value = 1}, '
            f'ports = {{variable = "A", value = 2}}}}\n{X}',
            "levers: A is in 2 of them",
        ),
        (f'ready = "x"\n{X}', "ready=x is not a path"),
        (f"ready\n{X}", "after a key"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(text: str, says: str, tmp_path: Path) -> None:
    said = refusal(bench, written(tmp_path, more=text), "shop")
    assert said.startswith("bench: TARGET=shop: subjects/shop.toml: ")
    assert says in said


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("shop:8080", "shop:8080 is not an address"),
        ("http://shop:8080/x", "scheme, host and port, without a path"),
        ("http://shop:8080/", "scheme, host and port, without a path"),
    ],
)
def test_its_address_is_scheme_host_and_port(url: str, says: str, tmp_path: Path) -> None:
    assert says in refusal(bench, written(tmp_path, 'path = "/x"', url=url), "shop")


def test_a_name_without_a_file_is_refused_with_those_there(tmp_path: Path) -> None:
    said = refusal(bench, written(tmp_path, 'path = "/x"'), "shp")
    assert re.search(r"there is no subjects/shp\.toml; allowed: http.*, shop$", said)
