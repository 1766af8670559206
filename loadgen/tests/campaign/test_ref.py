"""The verb `ref`: medians and spreads of what an operation costs."""

from __future__ import annotations

import json

import pytest

from lab.campaign.ref import ref_lines
from lab.errors import LabError
from support.system import REF_OUTPUT, FakeSystem


class Drifting(FakeSystem):
    """Each run of ref finds hand-overs half as dear again as the run before."""

    runs = 0

    def ref(self) -> str | None:
        told = json.loads(REF_OUTPUT)
        told["wake"]["cpu_seconds"] = 1.5**self.runs
        self.runs += 1
        return json.dumps(told)


class Without(FakeSystem):
    def ref(self) -> str | None:
        return None


def test_an_operation_costs_the_inverse_of_its_rate() -> None:
    head, one, every, wake, net = ref_lines(Drifting())
    assert "9 runs of ref a go1 amd64 2-cpu" in head
    assert one.split()[:3] == ["2.5", "[2.5,", "2.5]"]
    assert every.split()[:3] == ["1.25", "[1.25,", "1.25]"]
    assert wake.split()[:3] == ["50.6", "[10,", "256]"]
    assert net.split()[:4] == ["20", "[20,", "20]", "µs"]


def test_a_machine_without_ref_says_so() -> None:
    with pytest.raises(LabError, match="ref does not run here"):
        list(ref_lines(Without()))
