"""TARGET=: a service that is not the lab's, by its address or by subjects/<name>.toml."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from kinds.conftest import SHIPPED, refusal
from lab.kinds.plans import of_file, of_verb
from lab.kinds.reading import Here, with_secrets
from lab.model import NOT_STORED, Expect, Experiment, OwnLever, Request
from lab.store.records import from_json, json_text, to_json
from support.foreign import URL
from support.repo import REPO

OWN = Here(("fixed-pool",), 20_000, own=("my-service",))
ELSEWHERE = Here(("fixed-pool",), 20_000, own=("another",))
SECRET = "Bearer 5ecret"
MIX = (
    f'path = "/x"\nheaders = {{Authorization = "{SECRET}", Accept = "a"}}',
    'method = "POST"\npath = "/y"\nheaders = {X-Api-Key = "k5ecret"}',
)
X, READY = '[[request]]\npath = "/x"\n', 'ready = "/"\n'


def asked(here: Here = ELSEWHERE, **words: str) -> tuple[Experiment, tuple[str, ...]]:
    return of_verb("bench", {"TARGET": f"{URL}/x?a=1&b=2", "CONC": "200", **words}, here)


def bench(here: Here = ELSEWHERE, **words: str) -> Experiment:
    return asked(here, **words)[0]


def run(here: Here = OWN, files: Path = SHIPPED, **words: str) -> Experiment:
    return of_file({"TARGET": f"{URL}/x", **words}, here, files)[0]


def subject(folder: Path, name: str = "shop", **words: str) -> Experiment:
    return bench(copy.replace(ELSEWHERE, subjects=folder), TARGET=name, **words)


def written(folder: Path, *requests: str, url: str = "http://shop:8080", more: str = "") -> Path:
    tables = "".join(f"[[request]]\n{one}\n" for one in requests)
    (folder / "shop.toml").write_text(f'url = "{url}"\n{more}\n{tables}')
    return folder


def test_a_target_is_the_only_server_and_its_load_is_closed() -> None:
    experiment = bench()
    assert (experiment.servers, experiment.routes) == (("my-service",), ("/x?a=1&b=2",))
    assert (experiment.target, experiment.modes) == (URL, ("closed",))
    # The generator holds one descriptor per connection; the service's are its own affair.
    assert bench(CONC="19000").concurrencies == (19_000,)
    # A rate of one's own makes it both.
    assert bench(RATE="500").modes == ("closed", "open")
    assert bench(RATE="500", MODE="open").modes == ("open",)


@pytest.mark.parametrize(
    ("given", "target", "noted"),
    [
        ("https://my-service/x", "https://my-service:443", False),
        ("https://localhost:8443/x", "https://host.docker.internal:8443", True),
        *(
            (f"http://{host}:3000/x", "http://host.docker.internal:3000", True)
            for host in ("LOCALHOST", "127.0.0.1", "127.1.2.3", "0.0.0.0", "[::1]")
        ),
    ],
)
def test_this_machine_is_reached_by_its_name_in_a_container_with_a_note(
    given: str, target: str, noted: bool
) -> None:
    experiment, notes = asked(TARGET=given)
    assert experiment.target == target
    assert target.startswith(f"{given.partition(':')[0]}://{experiment.servers[0]}:")
    assert bool(notes) == noted
    assert all(note.endswith(f"loaded as {target}") for note in notes)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"SERVER": "fixed-pool"}, "bench: SERVER with TARGET is not allowed"),
        ({"ROUTE": "/"}, "bench: ROUTE with TARGET is not allowed"),
        ({"LAUNCHES": "2"}, "LAUNCHES=2 with TARGET is not allowed: my-service is no contai"),
        ({"RECORD": "cpu"}, "RECORD=cpu with TARGET is not allowed: my-service is no container"),
        ({"RATE": "auto"}, "an open load of a TARGET needs a rate"),
        ({"MODE": "both"}, "an open load of a TARGET needs a rate"),
        ({"MODE": "open"}, "allowed: RATE=n requests per second, or MODE=closed"),
        ({"TARGET": "ftp://x/"}, "TARGET=ftp://x/ is not an address; allowed: http(s)://host"),
        ({"TARGET": "my-service:8080"}, "TARGET=my-service:8080 is not an address; allowed: http"),
        ({"TARGET": "http://u:p@a/"}, "is not an address"),
        ({"TARGET": "http://a:0/"}, "port '0' is not allowed; allowed: 1..65535"),
        ({"TARGET": "http://[fe80::1]/"}, "allowed: a host name or an IPv4 address"),
        ({"TARGET": "http://a/?api_key=1"}, "api_key in a path would be stored"),
        ({"TARGET": "http://a/" + "x" * 200}, "212 characters as it is asked (http://a:80/…)"),
        # What is asked is longer than what was given.
        ({"TARGET": "http://localhost/" + "x" * 180}, "asked (http://host.docker.internal:80/…)"),
        ({"CONC": "19001"}, "CONC=19001 is more than this machine holds"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(words: dict[str, str], says: str) -> None:
    said = refusal(bench, **words)
    assert said.startswith("bench: ")
    assert says in said


@pytest.mark.parametrize(
    ("words", "modes"),
    [
        ({"EXP": "sweep"}, ("closed",)),
        ({"EXP": "sweep", "RATE": "500"}, ("closed", "open")),
        ({"EXP": "spike", "RATE": "500"}, ("open",)),
        ({"EXP": "endurance", "MODE": "closed"}, ("closed",)),
        # These find the rate themselves.
        ({"EXP": "stress"}, ("open",)),
        ({"EXP": "capacity"}, ("open",)),
    ],
)
def test_a_target_replaces_the_servers_of_a_file(
    words: dict[str, str], modes: tuple[str, ...]
) -> None:
    experiment = run(**words)
    assert (experiment.target, experiment.servers) == (URL, ("my-service",))
    assert (experiment.routes, experiment.modes) == (("/x",), modes)
    assert experiment.rate_rps == (500 if "RATE" in words else None)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"EXP": "spike", "RATE": "auto"}, "an open load of a TARGET needs a rate"),
        ({"EXP": "sweep", "MODE": "open"}, "an open load of a TARGET needs a rate"),
        ({"EXP": "truth"}, "^run: TARGET does not apply to experiments/truth"),
        ({"EXP": "density"}, "TARGET does not apply"),
        ({"EXP": "sweep", "SERVER": "a"}, "^run: SERVER with TARGET is not allowed"),
    ],
)
def test_a_target_that_an_experiment_cannot_have_is_refused(
    words: dict[str, str], says: str
) -> None:
    assert re.search(says, refusal(run, **words))


def mine(folder: Path, *lines: str) -> Path:
    """A folder with an experiment of the user's own."""
    head = 'question = "?"\nhypothesis = "!"\n[load]\nconcurrency = [5]\n'
    (folder / "mine.toml").write_text(head + "\n".join(lines))
    return folder


def test_a_file_without_a_rate_needs_one_where_its_load_is_open(tmp_path: Path) -> None:
    files = mine(tmp_path, 'modes = ["open"]')
    said = refusal(run, files=files, EXP="mine")
    assert "mine.toml: an open load of a TARGET needs a rate" in said
    assert run(files=files, EXP="mine", RATE="50").rate_rps == 50


def test_a_file_that_records_needs_a_target_that_the_lab_can_replace(tmp_path: Path) -> None:
    files = mine(tmp_path, "[loads]", 'record = "cpu"')
    said = refusal(run, ELSEWHERE, files, EXP="mine")
    assert "mine.toml: loads.record=cpu with TARGET is not allowed" in said
    experiment, [*_, note] = of_file({"EXP": "mine", "TARGET": f"{URL}/x"}, OWN, files)
    assert experiment.own == {"record": "cpu"}
    assert note.endswith("then it gets a fresh container")


def test_a_container_of_the_lab_is_made_anew_and_no_other_service() -> None:
    assert bench(OWN, LAUNCHES="6").launches == 6
    said = refusal(bench, ELSEWHERE, LAUNCHES="6")
    assert "allowed: a service of compose.override.yaml" in said
    # A file's launches are done where they can be.
    assert (run(EXP="capacity").launches, run(ELSEWHERE, EXP="capacity").launches) == (6, 0)


def test_an_inquiry_changes_the_levers_of_its_subject_in_a_container_of_the_lab(
    tmp_path: Path,
) -> None:
    levers = '"worker pool" = {variable = "POOL_SIZE", value = 20}\n"server CPU" = {cpus = 1}\n'
    (tmp_path / "shop.toml").write_text(f'url = "{URL}"\n{X}[levers]\n{levers}')
    words = {"TARGET": "shop", "CONC": "5"}
    found, notes = of_verb("explain", words, copy.replace(OWN, subjects=tmp_path))
    assert (found.servers, found.routes, found.launches) == (("my-service",), ("/x",), 0)
    assert found.levers == {
        "worker pool": OwnLever(variable="POOL_SIZE", value=20),
        "server CPU": OwnLever(cpus=1),
    }
    assert notes == ()
    assert from_json(Experiment, to_json(found)) == found
    # Any other service stays as it is.
    found, _ = of_verb("explain", words, copy.replace(ELSEWHERE, subjects=tmp_path))
    assert found.levers == {}


def test_the_example_is_a_mix_of_requests_under_its_name() -> None:
    of = subject(REPO / "subjects", "example")
    assert (of.target, of.servers) == ("http://my-service:8080", ("my-service",))
    assert (of.routes, of.ready) == (("example",), "/health")
    json_type, expect = {"Content-Type": "application/json"}, Expect(201, '"order":')
    assert of.requests == (
        Request("/items?page=1", weight=9),
        Request("/orders", "POST", json_type, '{"item": 7}', expect=expect),
    )


@pytest.mark.parametrize(
    ("keys", "route", "request_", "ready", "wrk2"),
    [
        ("", "/x", None, "/x", None),
        (
            'method = "PUT"', "PUT /x", {"method": "PUT"}, "/",
            "wrk2 sends GET of one path only, and PUT /x is more",
        ),
        (
            "expect = {status = [200, 404]}", "GET /x", {"expect": Expect((200, 404))}, "/x",
            "wrk2 checks no answers, and GET /x expects some; allowed",
        ),
    ],
    ids=["one GET is for any engine", "another method", "expected answers"],
)  # fmt: skip
def test_what_is_more_than_a_get_is_for_the_engine_that_can(
    tmp_path: Path,
    keys: str,
    route: str,
    request_: dict[str, Any] | None,
    ready: str,
    wrk2: str | None,
) -> None:
    more = "" if ready == "/x" else f'ready = "{ready}"'
    folder = written(tmp_path, f'path = "/x"\n{keys}', more=more)
    of = subject(folder)
    requests = () if request_ is None else (Request("/x", **request_),)
    assert (of.routes, of.requests, of.ready) == ((route,), requests, ready)
    if wrk2:
        assert wrk2 in refusal(subject, folder, ENGINE="wrk2")
    else:
        assert subject(folder, ENGINE="wrk2").engines == ("wrk2",)
    # As a run's manifest keeps it.
    assert from_json(Experiment, to_json(of)) == of


def test_secret_headers_are_read_again_and_not_stored(tmp_path: Path) -> None:
    folder = written(tmp_path, *MIX)
    began = subject(folder)
    assert began.requests[0].headers == {"Authorization": SECRET, "Accept": "a"}
    kept = json_text(began)
    assert "5ecret" not in kept
    stored = from_json(Experiment, json.loads(kept))
    assert stored.requests[0].headers == {"Authorization": NOT_STORED, "Accept": "a"}
    # Another token by now, as one ends.
    written(folder, *MIX[:1], MIX[1].replace("k5ecret", "another"))
    again = with_secrets("run", stored, folder)
    assert again.requests[0].headers["Authorization"] == SECRET
    assert again.requests[1].headers["X-Api-Key"] == "another"
    assert copy.replace(again, requests=stored.requests) == stored
    # A run without secrets needs no file.
    stored = subject(written(tmp_path, 'path = "/x"\nheaders = {Accept = "a"}'))
    assert with_secrets("run", stored, tmp_path / "gone") == stored


@pytest.mark.parametrize(
    ("requests", "says"),
    [
        ((), "subjects/shop.toml is gone or has another address"),
        (('path = "/x"', MIX[1]), "other requests than when the run began"),
        ((MIX[0].replace("Authorization", "Cookie"), MIX[1]), "other requests"),
        ((MIX[0],), "the values of Authorization, X-Api-Key, and subjects/shop.toml is"),
        ((MIX[0].replace('"a"', '"b"'), MIX[1]), "other requests"),
        (('path = "x"',), "request 1: path=x is not a path"),
    ],
)
def test_a_run_without_its_secrets_is_refused(
    tmp_path: Path, requests: tuple[str, ...], says: str
) -> None:
    stored = from_json(Experiment, to_json(subject(written(tmp_path, *MIX))))
    (tmp_path / "shop.toml").unlink()
    if requests:
        written(tmp_path, *requests)
    said = refusal(with_secrets, "20260101T000000Z-x", stored, tmp_path)
    assert said.startswith("run: RESUME=20260101T000000Z-x: ")
    assert says in said
    assert "5ecret" not in said


def test_secrets_go_to_no_other_address_than_that_of_their_subject(tmp_path: Path) -> None:
    stored = from_json(Experiment, to_json(subject(written(tmp_path, *MIX))))
    elsewhere = copy.replace(stored, target="http://elsewhere:80")
    assert "has another address" in refusal(with_secrets, "run", elsewhere, tmp_path)


def test_what_is_expected_is_a_status_or_some_of_them() -> None:
    assert [Expect(404).takes(status) for status in (200, 404)] == [False, True]
    assert [Expect((200, 404)).takes(status) for status in (200, 404, 500)] == [True, True, False]
    assert [Expect(body_contains="a").takes(status) for status in (200, 400)] == [True, False]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "required field `request`"),
        ("request = []", "it has no [[request]]; allowed: one and more"),
        ('[[request]]\npath = "x"', "request 1: path=x is not a path"),
        (f'[[request]]\npath = "/{"x" * 190}"', "is longer than 200 with its host"),
        (f'{X}[[request]]\npath = "/y"\nmethod = "get"', "request 2: method=get is not allowed"),
        (f'{READY}{X}method = "CONNECT"', "method=CONNECT is not allowed"),
        (f"{X}weight = 0", "weight=0 is not allowed; allowed: above 0"),
        (f'{X}weight = "many"', "Expected `float`"),
        (f"{X}wight = 1", "unknown field `wight`"),
        (f'{X}headers = {{"a b" = "c"}}', "request 1: the header 'a b', or its value"),
        (f'{X}headers = {{a = "b\\nc"}}', "request 1: the header 'a', or its value"),
        (f'{X}headers = {{content-Length = "1"}}', "the header 'content-Length'"),
        ('[[request]]\npath = "/x?a=1&access_token=c"', "request 1: access_token in a path would"),
        (f'{X}method = "POST"', "ready is missing"),
        (f"{X}expect = {{}}", "request 1: expect: it is empty; allowed: status, body_"),
        (f"{X}expect = {{status = []}}", "expect: it is empty"),
        (f"{X}expect = {{status = 99}}", "expect: status=99 is not allowed; allowed: 2"),
        (f"{X}expect = {{status = [200, 600]}}", "status=600 is not allowed"),
        (f'{X}expect = {{status = "ok"}}', "Expected `int | array`"),
        (f'{X}expect = {{body_contains = ""}}', "a text of 1 to 1000 bytes"),
        (f'{X}expect = {{body_contains = "{"é" * 501}"}}', "of 1 to 1000 bytes"),
        (
            f'{READY}{X}method = "HEAD"\nexpect = {{body_contains = "a"}}',
            "an answer to HEAD has no body",
        ),
        (
            f'{X}headers = {{accept-Encoding = "br"}}\nexpect = {{body_contains = "a"}}',
            "beside Accept-Encoding: the body may come compressed",
        ),
        (f"levers = {{pool = {{cpus = 1}}}}\n{X}", "levers: pool is not a resource; allowed: a"),
        (f'levers = {{"server CPU" = {{}}}}\n{X}', "it is empty; allowed: variable with value"),
        (
            'levers = {"worker pool" = {variable = "A", value = 1}, '
            f'ports = {{variable = "A", value = 2}}}}\n{X}',
            "levers: A is in 2 of them",
        ),
        (f'ready = "x"\n{X}', "ready=x is not a path"),
        (f"ready\n{X}", "after a key"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(text: str, says: str, tmp_path: Path) -> None:
    said = refusal(subject, written(tmp_path, more=text))
    assert said.startswith("bench: TARGET=shop: subjects/shop.toml: ")
    assert says in said


@pytest.mark.parametrize(
    ("url", "name", "says"),
    [
        ("shop:8080", "shop", "shop:8080 is not an address"),
        ("http://shop:8080/x", "shop", "scheme, host and port, without a path"),
        ("http://shop:8080/", "shop", "scheme, host and port, without a path"),
        ("http://shop:8080", "shp", r"there is no subjects/shp\.toml; allowed: http.*, shop$"),
    ],
)
def test_a_subject_has_a_file_with_scheme_host_and_port(
    url: str, name: str, says: str, tmp_path: Path
) -> None:
    assert re.search(says, refusal(subject, written(tmp_path, 'path = "/x"', url=url), name))
