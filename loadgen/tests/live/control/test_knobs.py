"""The knobs of the page are those of the servers' contract, with its limits."""

import re

from lab.model.knobs import KNOBS
from support.repo import REPO

SERVERS = REPO / "servers"


def test_every_knob_has_the_limits_of_the_contract() -> None:
    text = "".join(path.read_text() for path in SERVERS.glob("*/src/main/**/*.java"))
    options = {
        name: tuple(int(number.replace("_", "")) for number in limits.split(","))
        for name, limits in re.findall(
            r'new IntOption\(\s*"(\w+)",\s*[\d_]+,\s*([\d_]+,\s*[\d_]+)\)', text
        )
    }
    assert {knob.name: (knob.least, knob.most) for knob in KNOBS} == {
        knob.name: options[knob.name] for knob in KNOBS
    }
