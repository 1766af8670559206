"""The dashboards against Grafana's schema of classic dashboards (11.6), as its SDK has it.

The types of its Foundation SDK are generated from that schema. They take any value, so what they
say is asked here: every field is known, and every value is of its type and, where there are only
some, one of those.
"""

import copy
import json
import types
import typing
from collections.abc import Iterator
from enum import Enum
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.dashboard import Dashboard

# Prometheus' annotations have fields of their own, which the schema of dashboards leaves open.
OF_PROMETHEUS = {"step", "titleFormat", "textFormat", "tagKeys", "useValueForTime"}
PLAIN = (str, bool, int, float)


@pytest.fixture(scope="session", autouse=True)
def plugins() -> None:
    """Panels and queries are read by the types of their kind."""
    register_default_plugins()


@pytest.fixture(scope="session")
def boards(files: dict[str, Any]) -> dict[str, Any]:
    """Every dashboard without what only Prometheus' annotations have."""
    whole = copy.deepcopy(files)
    for mark in (mark for board in whole.values() for mark in board["annotations"]["list"]):
        for field in OF_PROMETHEUS & set(mark):
            del mark[field]
    return whole


def unlike(value: Any, hint: Any, where: str) -> Iterator[str]:
    """Where a value is not what its type says."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in (Any, object):
        # What stands there is of its panel's kind, and read as that.
        hint, origin = type(value), None
    if origin in (typing.Union, types.UnionType):
        if all(any(unlike(value, one, where)) for one in arguments):
            wrong = [found for one in arguments for found in unlike(value, one, where)]
            yield from wrong
    elif origin is list:
        if isinstance(value, list):
            for at, one in enumerate(value):
                yield from unlike(one, arguments[0], f"{where}[{at}]")
        else:
            yield f"{where} is no list: {value!r}"
    elif origin is dict:
        for key, one in value.items():
            yield from unlike(one, arguments[1], f"{where}.{key}")
    elif origin is typing.Literal:
        if value not in arguments:
            yield f"{where} is {value!r}, none of {arguments}"
    elif issubclass(hint, Enum):
        known = [one.value for one in hint]
        if (value.value if isinstance(value, Enum) else value) not in known:
            yield f"{where} is {value!r}, none of {known}"
    elif not isinstance(value, (int, float) if hint is float else hint) or (
        isinstance(value, bool) and hint in (int, float)
    ):
        yield f"{where} is {value!r}, no {hint.__name__}"
    elif hint not in PLAIN and hasattr(value, "to_json"):
        for name, one in typing.get_type_hints(type(value)).items():
            yield from unlike(getattr(value, name), one, f"{where}.{name}")


def lost(given: Any, kept: Any, where: str) -> Iterator[str]:
    """What of a file the types do not know."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, value in given.items():
            if key in kept:
                yield from lost(value, kept[key], f"{where}.{key}")
            else:
                yield f"{where}.{key}"
    elif isinstance(given, list) and isinstance(kept, list):
        for at, (one, other) in enumerate(zip(given, kept, strict=True)):
            yield from lost(one, other, f"{where}[{at}]")
    elif given != kept:
        yield f"{where}: {given!r} became {kept!r}"


def wrong(board: Any) -> list[str]:
    """All that is not of the schema."""
    read = Dashboard.from_json(board)
    again = json.loads(json.dumps(read, cls=JSONEncoder))
    return [*lost(board, again, board["uid"]), *unlike(read, Dashboard, board["uid"])]


def test_every_dashboard_is_of_grafana_s_schema(boards: dict[str, Any]) -> None:
    assert {uid: found for uid, board in boards.items() if (found := wrong(board))} == {}


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("panels", 1, "gridPos", "w"), "12", "grid_pos.w is '12', no int"),
        (("panels", 1, "gridPos", "width"), 12, "gridPos.width"),
        (("panels", 1, "options", "legend", "displayMode"), "grid", "display_mode is 'grid'"),
        (("panels", 1, "fieldConfig", "defaults", "custom", "lineWidth"), "2", "line_width is '2'"),
        (("templating", "list", 0, "refresh"), 7, "refresh is 7, none of [0, 1, 2]"),
    ],
)
def test_what_is_not_of_the_schema_is_found(
    boards: dict[str, Any], path: tuple[str | int, ...], value: Any, said: str
) -> None:
    place = board = copy.deepcopy(boards["lab"])
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert any(said in one for one in wrong(board)), wrong(board)


def test_every_unit_is_one_that_grafana_knows(files: dict[str, Any]) -> None:
    known = {value for name, value in vars(units).items() if name[0].isupper()}
    # Of an unknown one Grafana writes the name behind the value.
    assert "reqps" in known
    used = {
        panel["fieldConfig"]["defaults"]["unit"]
        for board in files.values()
        for panel in board["panels"]
        if panel["type"] != "row"
    }
    assert used - known == set()
