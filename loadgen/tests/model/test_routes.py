"""The driver's table of routes against the contract's own text, and the reading of paths."""

import re

import pytest

from lab.model.routes import ROUTES, Parameter, parse
from support.repo import REPO

SPEC = REPO / "servers/spec/src/main/java/lab/spec"
ROUTE = re.compile(r'\b[A-Z_]+\(\s*"(/[^"]*)"')
OPTION = re.compile(r'new IntOption\(\s*"(\w+)",\s*([\w.]+),\s*([\w.]+),\s*([\w.]+)\)')


def constants(text: str) -> str:
    """Java's numbers and named constants as plain digits."""
    lines = re.search(r"int LINES = ([\d_]+);", (SPEC / "LineFile.java").read_text())
    return re.sub(r"(?<=\d)_(?=\d)", "", text.replace("LineFile.LINES", lines[1]))


def contract_routes() -> dict[str, tuple[Parameter, ...]]:
    """Path and parameters of every route of Route.java, in its order."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", (SPEC / "Route.java").read_text(), flags=re.DOTALL)
    text = constants(text)
    body, _, rest = text.partition("private final String path")
    helpers = {
        name: f"new IntOption({option})"
        for name, option in re.findall(
            r"IntOption (\w+)\([^)]*\) \{\s*return new IntOption\(([^)]*)\);", rest
        )
    }
    assert sorted(helpers) == ["lines", "wait"]
    body = body.replace("lines()", helpers["lines"])
    body = re.sub(r"\bwait\((\d+)\)", lambda w: helpers["wait"].replace("fallbackMs", w[1]), body)
    starts = list(ROUTE.finditer(body))
    routes = {}
    for start, after in zip(starts, [*starts[1:], None], strict=True):
        segment = body[start.end() : after.start() if after else body.index("NONE(")]
        routes[start[1]] = tuple(
            Parameter(name, int(default), int(least), int(most))
            for name, default, least, most in OPTION.findall(segment)
        )
        # Nothing of a route may be left unread.
        assert re.fullmatch(r"[\s,();]*", OPTION.sub("", segment)), segment
    return routes


def test_routes_parameters_and_limits_are_those_of_the_contract() -> None:
    # No order of its own: the driver's is that of its selector on the dashboard.
    assert {route.path: route.parameters for route in ROUTES} == contract_routes()
    for route in ROUTES:
        named = {parameter.name for parameter in route.parameters}
        assert {*route.waits, *route.asleep} <= named, route.path


@pytest.mark.parametrize(
    ("path", "wait_ms", "asleep_ms"),
    [
        ("/", 10, 10),
        ("/?wait_ms=50", 50, 50),
        ("/downstream", None, 0),
        ("/synchronized", None, 0),
        ("/health", 0, 0),
        ("/compute?limit=2", 0, 0),
        ("/block", 300, 300),
        ("/file", 0, 0),
        # The slowest branch.
        ("/aggregate", 300, 300),
        ("/aggregate-old?lines=1&wait_ms=7", 7, 7),
        # The first of 100 and 300 ms; a blocked loop sleeps through the first branch.
        ("/first-success", 100, 100),
        ("/first-success?fast_ms=400", 300, 400),
        # A wait of 300 ms, given up after 200; a blocked loop cannot give up.
        ("/aggregate-with-fallback", 200, 300),
        ("/aggregate-with-fallback?timeout_ms=900", 300, 300),
        # Three waits at once; a blocked loop sleeps them one after the other.
        ("/multi-aggregate", 300, 900),
        ("/metrics", 0, 0),
    ],
)
def test_a_request_waits_as_its_route_says(path: str, wait_ms: int | None, asleep_ms: int) -> None:
    call = parse(path)
    assert (call.wait_ms, call.asleep_ms) == (wait_ms, asleep_ms)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("block", "block is not a route of the servers; allowed: /, /downstream,"),
        ("/nothing", "/nothing is not a route"),
        ("//host/block", "is not a route"),
        ("/block#x", "is not a route"),
        ("/block?ms=5", "'ms' is not a parameter of the route; /block takes wait_ms=0..60000"),
        ("/block?", "'' is not a parameter"),
        ("/health?a=1", "/health takes none"),
        ("/block?wait_ms=5&wait_ms=5", "'wait_ms' is given twice"),
        ("/block?wait_ms=60001", "wait_ms=60001 is not allowed; allowed: wait_ms=0..60000"),
        ("/block?wait_ms=-1", "wait_ms=-1 is not allowed"),
        ("/block?wait_ms", "wait_ms= is not allowed"),
        ("/compute?limit=1", "allowed: limit=2..1000000"),
        ("/first-success?fast_ms=0", "allowed: fast_ms=1..60000"),
        ("/file?lines=٣", "is not allowed; allowed: lines=1..100000"),
    ],
)
def test_a_wrong_path_gets_one_line_saying_what_is_allowed(path: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)) as refused:
        parse(path)
    assert "\n" not in str(refused.value)
