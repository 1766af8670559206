"""Templates of texts: optional parts, alternatives, conditions."""

from typing import Any

import pytest

from lab.model import Remark
from lab.report.remarks import filled, say, text


@pytest.mark.parametrize(
    ("template", "values", "text"),
    [
        ("a[ {b}]", {}, "a"),
        ("a[ {b}]", {"b": None}, "a"),
        ("a[ {b}]", {"b": ""}, "a"),
        ("a[ {b}]", {"b": 0}, "a 0"),
        ("a[ {b} {c}]", {"b": 1}, "a"),
        ("a[ {b!c}]", {"b": 0}, "a"),
        ("a[ {b!c}]", {"b": 2}, "a 2"),
        ("[{b}|none]", {}, "none"),
        ("[{b}|{c}|none]", {"c": 1}, "1"),
        ("[{b}|{c}]", {}, ""),
        ("x[ [{low}, {high}]]", {"low": 1, "high": 2}, "x [1, 2]"),
        ("x[ [{low}, {high}]]", {"low": 1}, "x"),
        ("[[{low}, {high}]]", {"low": 1, "high": 2}, "[1, 2]"),
        ("[{b:?}yes|no]", {"b": True}, "yes"),
        ("[{b:?}yes|no]", {"b": False}, "no"),
        ("{b.real:.1f}[ {b.none}]", {"b": 3.0}, "3.0"),
        ("{b!t} {c!w}", {"b": 1234.5, "c": "jit,x"}, "1,234 JIT compile time, x"),
        ("{b}", {"b": ""}, ""),
        ("{b}", {"b": None}, None),
        ("{b} {c}", {"b": "[{c}]"}, None),
        ("{b}", {"b": "[{c}|d]"}, "[{c}|d]"),
    ],
)
def test_a_template_has_the_values_that_are_there(
    template: str, values: dict[str, Any], text: str | None
) -> None:
    assert filled(template, values) == text


def test_a_value_of_another_type_is_written_as_it_is() -> None:
    odd = Remark("clock-set", {"took_s": "x", "wall_s": 1.0})
    assert text(odd) == odd.cell


def test_a_text_that_cannot_be_written_is_its_code() -> None:
    assert say("answers", "unheard of") == "unheard of"
    assert say("answers", "reached", rps="1") == "reached"
