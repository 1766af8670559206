"""The verb `ref`: medians and spreads of what an operation costs."""

import itertools
import json

import pytest

from lab.app.ref import ref_lines
from lab.errors import LabError
from support.system import REF_OUTPUT, FakeSystem


def test_an_operation_costs_the_inverse_of_its_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = itertools.count()

    def drifting(_: FakeSystem) -> str:
        """Each run of ref finds hand-overs half as dear again as the run before."""
        told = json.loads(REF_OUTPUT)
        told["wake"]["cpu_seconds"] = 1.5 ** next(runs)
        return json.dumps(told)

    monkeypatch.setattr(FakeSystem, "ref", drifting)
    head, *lines = ref_lines(FakeSystem())
    assert "9 runs of ref a go1 amd64 2-cpu" in head
    assert [line.split()[:4] for line in lines] == [
        ["2.5", "[2.5,", "2.5]", "ns"],
        ["1.25", "[1.25,", "1.25]", "ns"],
        ["50.6", "[10,", "256]", "µs"],
        ["20", "[20,", "20]", "µs"],
    ]
    monkeypatch.setattr(FakeSystem, "ref", lambda _: None)
    with pytest.raises(LabError):
        list(ref_lines(FakeSystem()))
