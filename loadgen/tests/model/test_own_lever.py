"""What the lab may change of the container of a service of the user's own."""

from typing import Any

import pytest

from lab.model import Remark
from lab.model.knobs import CPUS
from lab.model.own_lever import OwnChange, OwnLever, SettingChange, change_of
from lab.store.records import from_json
from support.repo import matches_in_bash

POOL = OwnLever(variable="POOL_SIZE", value=20)
HEAP = OwnLever(variable="JAVA_OPTS", value=256, text="-XX:+UseG1GC -Xms{}m -Xmx{}m", memory="1g")
LIMITED = OwnLever(variable="POOL_SIZE", value=20, most=30)


def heap(size: int, memory: int) -> dict[str, str]:
    flags = f"-XX:+UseG1GC -Xms{size}m -Xmx{size}m"
    return {"ENV_JAVA_OPTS": flags, "OWN_MEMORY": f"{memory}m"}


@pytest.mark.parametrize(
    ("lever", "host", "enough", "step", "lift"),
    [
        # Doubled, and lifted to what is enough or four times, never to less than the step.
        (POOL, {}, 400, {"ENV_POOL_SIZE": "40"}, {"ENV_POOL_SIZE": "400"}),
        (POOL, {}, None, {"ENV_POOL_SIZE": "40"}, {"ENV_POOL_SIZE": "80"}),
        (POOL, {}, 30, {"ENV_POOL_SIZE": "40"}, {"ENV_POOL_SIZE": "40"}),
        # What was lifted before goes on from there, and nothing is set beyond what it takes.
        (POOL, {"ENV_POOL_SIZE": "80"}, 400, {"ENV_POOL_SIZE": "160"}, {"ENV_POOL_SIZE": "400"}),
        (LIMITED, {}, 400, {"ENV_POOL_SIZE": "30"}, {"ENV_POOL_SIZE": "30"}),
        # What belongs together changes together.
        (HEAP, {}, None, heap(512, 2048), heap(1024, 4096)),
        (HEAP, heap(512, 2048), None, heap(1024, 4096), heap(2048, 8192)),
        # CPUs are lifted to all of the machine.
        (OwnLever(cpus=0.5), {}, None, {"OWN_CPUS": "1"}, {"OWN_CPUS": "4"}),
        (OwnLever(cpus=3), {}, None, {"OWN_CPUS": "4"}, {"OWN_CPUS": "4"}),
    ],
)
def test_a_lever_has_a_step_and_a_lift(
    lever: OwnLever, host: dict[str, str], enough: int | None, step: object, lift: object
) -> None:
    change = change_of(lever, host, enough, 4)
    assert isinstance(change, OwnChange), change
    assert (change.step, change.lift) == (step, lift)
    first = change.settings[0]
    assert change.factor == (None if lever is HEAP else first.step / first.now)
    for settings in (change.step, change.lift):
        assert settings.keys() == lever.patterns.keys()
        for name, value in settings.items():
            assert matches_in_bash(lever.patterns[name], value)
            for wrong in (f"{value}x", f"{value};x", f"x{value}", f"{value}$"):
                assert not matches_in_bash(lever.patterns[name], wrong)


def test_a_change_names_its_numbers_and_one_at_its_most_is_none() -> None:
    change = change_of(HEAP, {}, None, 4)
    assert isinstance(change, OwnChange)
    assert change.settings[1] == SettingChange("memory", 1024, 2048, 4096, "MiB")
    full = change_of(LIMITED, {"ENV_POOL_SIZE": "30"}, 400, 4)
    assert full == Remark("at-most", {"setting": "POOL_SIZE", "value": 30})
    full = change_of(OwnLever(cpus=4), {}, None, 4)
    assert full == Remark("at-most", {"setting": "cpus", "value": 4})


@pytest.mark.parametrize(
    ("lever", "says"),
    [
        ({}, "it is empty"),
        ({"variable": "A"}, "variable and value belong together"),
        ({"value": 1}, "it is empty"),
        ({"variable": "A", "value": 9, "most": 8}, "value=9 is not allowed; allowed: 1..8"),
        *(({"variable": name, "value": 1}, "$.variable") for name in ("a", "A=B", "A\n", "A" * 51)),
        *(({"variable": "A", "value": value}, "$.value") for value in (0, 100_000_001)),
        ({"variable": "A", "value": 1, "most": 0}, "$.most"),
        *(
            ({"variable": "A", "value": 1, "text": text}, "$.text")
            for text in ("-Xmx1m", '{}"', "${}", "{}\n", "{0}{}")
        ),
        *(({"cpus": cpus}, "$.cpus") for cpus in (0, 1000, float("nan"))),
        *(({"memory": memory}, "$.memory") for memory in ("1", "0m", "1g\n")),
    ],
)
def test_what_is_no_lever(lever: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=r"^OwnLever: ") as refused:
        from_json(OwnLever, lever)
    assert says in str(refused.value)


def test_only_digits_of_the_text_vary() -> None:
    assert HEAP.patterns == {
        "ENV_JAVA_OPTS": r"-XX:\+UseG1GC -Xms[0-9]{1,9}m -Xmx[0-9]{1,9}m",
        "OWN_MEMORY": "[1-9][0-9]{0,6}[mg]",
    }
    assert OwnLever(cpus=1).patterns == {"OWN_CPUS": CPUS}
    assert not matches_in_bash(HEAP.patterns["ENV_JAVA_OPTS"], "-XX::UseG1GC -Xms1m -Xmx1m")
