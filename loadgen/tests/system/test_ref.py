"""What the program `ref` tells, as the driver reads it."""

from __future__ import annotations

import json

import pytest

from lab.model import Ref
from lab.system.ref import read_ref
from support.system import REF_OUTPUT


def test_counts_are_for_each_second_of_cpu_time() -> None:
    told = json.loads(REF_OUTPUT)
    told["wake"] = {"count": 5000, "cpu_seconds": 0.25, "seconds": 1.5}
    assert read_ref(json.dumps(told)) == Ref("a go1 amd64 2-cpu", 4e8, 8e8, 20_000, 5e4)


@pytest.mark.parametrize("field", ["cpu_seconds", "count"])
def test_nothing_is_made_of_nothing(field: str) -> None:
    told = json.loads(REF_OUTPUT)
    told["net"][field] = 0
    assert read_ref(json.dumps(told)) is None
    assert read_ref(None) is None
