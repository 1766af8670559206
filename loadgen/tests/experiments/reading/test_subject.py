"""TARGET=<name>: what subjects/<name>.toml says of a service of the user's own."""

import dataclasses
import json
from pathlib import Path

import pytest

from lab.errors import WordError
from lab.experiments.plans import of_verb
from lab.experiments.reading import Here, with_secrets
from lab.model import NOT_STORED, Expect, Experiment, Request
from lab.store.records import from_json, json_text, to_json
from support.repo import REPO


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


def test_one_that_is_no_get_is_called_by_its_method(tmp_path: Path) -> None:
    folder = written(tmp_path, 'path = "/x"\nmethod = "PUT"', more='ready = "/"')
    of = bench(folder, "shop")
    assert (of.routes, of.requests, of.ready) == (("PUT /x",), (Request("/x", "PUT"),), "/")
    with pytest.raises(WordError, match=r"wrk2 sends GET of one path only, and PUT /x is more"):
        bench(folder, "shop", ENGINE="wrk2")


def test_what_answers_have_to_be_is_for_the_engine_that_checks_them(tmp_path: Path) -> None:
    folder = written(tmp_path, 'path = "/x"\nexpect = {status = [200, 404]}')
    of = bench(folder, "shop")
    assert (of.routes, of.ready) == (("GET /x",), "/x")
    assert [one.expect for one in of.requests] == [Expect((200, 404))]
    with pytest.raises(
        WordError, match=r"wrk2 checks no answers, and GET /x expects some; allowed"
    ):
        bench(folder, "shop", ENGINE="wrk2")
    # As a run's manifest keeps it.
    assert from_json(Experiment, to_json(of)) == of


SECRET = "Bearer 5ecret"
MIX = (
    f'path = "/x"\nheaders = {{Authorization = "{SECRET}", Accept = "a"}}',
    'method = "POST"\npath = "/y"\nheaders = {X-Api-Key = "k5ecret"}',
)


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
    assert dataclasses.replace(again, requests=stored.requests) == stored


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
def test_a_stored_run_whose_secrets_are_gone_is_refused_in_one_line(
    tmp_path: Path, requests: tuple[str, ...], says: str
) -> None:
    stored = from_json(Experiment, to_json(bench(written(tmp_path, *MIX), "shop")))
    (tmp_path / "shop.toml").unlink()
    if requests:
        written(tmp_path, *requests)
    with pytest.raises(WordError, match=says) as refusal:
        with_secrets("20260101T000000Z-x", stored, tmp_path)
    assert str(refusal.value).startswith("run: RESUME=20260101T000000Z-x: ")
    assert "\n" not in str(refusal.value)
    assert "5ecret" not in str(refusal.value)


def test_a_stored_run_without_secrets_needs_no_file(tmp_path: Path) -> None:
    stored = bench(written(tmp_path, 'path = "/x"\nheaders = {Accept = "a"}'), "shop")
    assert with_secrets("run", stored, tmp_path / "gone") == stored


def test_what_is_expected_is_a_status_or_some_of_them() -> None:
    assert [Expect(404).takes(status) for status in (200, 404)] == [False, True]
    assert [Expect((200, 404)).takes(status) for status in (200, 404, 500)] == [True, True, False]
    assert [Expect(body_contains="a").takes(status) for status in (200, 400)] == [True, False]


@pytest.mark.parametrize(
    ("requests", "more", "says"),
    [
        ([], "", "required field `request`"),
        (['path = "x"'], "", "request 1: path=x is not a path"),
        (
            ['path = "/x"', 'path = "/y"\nmethod = "get"'],
            "",
            "request 2: method=get is not allowed",
        ),
        (['path = "/x"\nmethod = "CONNECT"'], 'ready = "/"', "method=CONNECT is not allowed"),
        (['path = "/x"\nweight = 0'], "", "weight=0 is not allowed; allowed: above 0"),
        (['path = "/x"\nweight = "many"'], "", "Expected `float`"),
        (['path = "/x"\nwight = 1'], "", "has no field wight"),
        (['path = "/x"\nheaders = {"a b" = "c"}'], "", "request 1: the header 'a b', or its value"),
        (['path = "/x"\nheaders = {a = "b\\nc"}'], "", "request 1: the header 'a', or its value"),
        (
            ['path = "/x?a=1&access_token=c"'],
            "",
            "request 1: access_token in a path would be stored",
        ),
        (['path = "/x"\nheaders = {content-Length = "1"}'], "", "the header 'content-Length'"),
        (['path = "/x"\nmethod = "POST"'], "", "ready is missing"),
        (
            ['path = "/x"\nexpect = {}'],
            "",
            "request 1: expect: it is empty; allowed: status, body_",
        ),
        (['path = "/x"\nexpect = {status = []}'], "", "expect: it is empty"),
        (
            ['path = "/x"\nexpect = {status = 99}'],
            "",
            "expect: status=99 is not allowed; allowed: 2",
        ),
        (['path = "/x"\nexpect = {status = [200, 600]}'], "", "status=600 is not allowed"),
        (['path = "/x"\nexpect = {status = "ok"}'], "", "Expected `int | array`"),
        (['path = "/x"\nexpect = {body = "ok"}'], "", "has no field body"),
        (['path = "/x"\nexpect = {body_contains = ""}'], "", "a text of 1 to 1000 bytes"),
        ([f'path = "/x"\nexpect = {{body_contains = "{"é" * 501}"}}'], "", "of 1 to 1000 bytes"),
        (
            ['path = "/x"\nmethod = "HEAD"\nexpect = {body_contains = "a"}'],
            'ready = "/"',
            "an answer to HEAD has no body",
        ),
        (
            ['path = "/x"\nheaders = {accept-encoding = "br"}\nexpect = {body_contains = "a"}'],
            "",
            "beside Accept-Encoding: the body may come compressed",
        ),
        (
            ['path = "/x"'],
            "levers = {pool = {cpus = 1}}",
            "levers: pool is not a resource; allowed: w",
        ),
        (
            ['path = "/x"'],
            'levers = {"server CPU" = {}}',
            "levers: server CPU: it is empty; allowed: v",
        ),
        (['path = "/x"'], 'levers = {"server CPU" = {cpu = 1}}', "has no field cpu"),
        (
            ['path = "/x"'],
            'levers = {"worker pool" = {variable = "A", value = 1}, '
            'ports = {variable = "A", value = 2}}',
            "levers: A is in 2 of them",
        ),
        (['path = "/x"'], 'ready = "x"', "ready=x is not a path"),
        (['path = "/x"'], "ready", "after a key"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    requests: list[str], more: str, says: str, tmp_path: Path
) -> None:
    with pytest.raises(WordError) as refused:
        bench(written(tmp_path, *requests, more=more), "shop")
    said = str(refused.value)
    assert said.startswith("bench: TARGET=shop: subjects/shop.toml: ")
    assert says in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("shop:8080", "shop:8080 is not an address"),
        ("http://shop:8080/x", "scheme, host and port, without a path"),
        ("http://shop:8080/", "scheme, host and port, without a path"),
    ],
)
def test_its_address_is_scheme_host_and_port(url: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(WordError, match=says):
        bench(written(tmp_path, 'path = "/x"', url=url), "shop")


def test_a_name_without_a_file_is_refused_with_those_there(tmp_path: Path) -> None:
    with pytest.raises(WordError, match=r"there is no subjects/shp\.toml; allowed: http.*, shop$"):
        bench(written(tmp_path, 'path = "/x"'), "shp")
