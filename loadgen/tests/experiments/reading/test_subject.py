"""TARGET=<name>: what subjects/<name>.toml says of a service of the user's own."""

from pathlib import Path

import pytest

from lab.errors import WordError
from lab.experiments.plans import of_verb
from lab.experiments.reading import Here
from lab.model import Experiment, Request
from support.repo import REPO


def bench(folder: Path, name: str, **words: str) -> Experiment:
    here = Here(("fixed-pool",), 20_000, subjects=folder)
    found, _ = of_verb("bench", {"TARGET": name, "CONC": "5", **words}, here)
    assert isinstance(found, Experiment)
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
        Request("/orders", "POST", {"Content-Type": "application/json"}, '{"item": 7}'),
    )


def test_one_get_is_a_load_for_any_engine(tmp_path: Path) -> None:
    of = bench(written(tmp_path, 'path = "/x?a=1"'), "shop", ENGINE="wrk")
    assert (of.routes, of.requests, of.ready) == (("/x?a=1",), (), "/x?a=1")


def test_one_that_is_no_get_is_called_by_its_method(tmp_path: Path) -> None:
    folder = written(tmp_path, 'path = "/x"\nmethod = "PUT"', more='ready = "/"')
    of = bench(folder, "shop")
    assert (of.routes, of.requests, of.ready) == (("PUT /x",), (Request("/x", "PUT"),), "/")
    with pytest.raises(WordError, match=r"wrk sends GET of one path only, and PUT /x is more"):
        bench(folder, "shop", ENGINE="wrk")


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
        (['path = "/x"\nheaders = {"a b" = "c"}'], "", "request 1: the header 'a b': 'c'"),
        (['path = "/x"\nheaders = {a = "b\\nc"}'], "", "request 1: the header 'a':"),
        (['path = "/x"\nheaders = {content-Length = "1"}'], "", "the header 'content-Length'"),
        (['path = "/x"\nmethod = "POST"'], "", "ready is missing"),
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
