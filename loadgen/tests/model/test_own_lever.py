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


def changed(of: OwnLever, enough: int | None = None, **host: str) -> OwnChange:
    found = change_of(of, host, enough, 4)
    assert isinstance(found, OwnChange), found
    return found


def test_a_number_is_doubled_and_lifted_to_what_is_enough_or_four_times() -> None:
    setting = SettingChange("POOL_SIZE", 20, 40, 400)
    assert changed(POOL, 400) == OwnChange(
        {"ENV_POOL_SIZE": "40"}, {"ENV_POOL_SIZE": "400"}, (setting,), 2.0
    )
    assert changed(POOL).lift == {"ENV_POOL_SIZE": "80"}
    # Never to less than its step.
    assert changed(POOL, 30).lift == {"ENV_POOL_SIZE": "40"}
    # What was lifted before goes on from there.
    assert changed(POOL, 400, ENV_POOL_SIZE="80").step == {"ENV_POOL_SIZE": "160"}
    # Nothing is set beyond what it takes.
    limited = OwnLever(variable="POOL_SIZE", value=20, most=30)
    assert changed(limited, 400).lift == changed(limited, 400).step == {"ENV_POOL_SIZE": "30"}
    full = change_of(limited, {"ENV_POOL_SIZE": "30"}, 400, 4)
    assert full == Remark("at-most", {"setting": "POOL_SIZE", "value": 30})


def test_what_belongs_together_changes_together() -> None:
    once, twice = (f"-XX:+UseG1GC -Xms{size}m -Xmx{size}m" for size in (512, 1024))
    both = changed(HEAP)
    assert both.step == {"ENV_JAVA_OPTS": once, "OWN_MEMORY": "2048m"}
    assert both.lift["OWN_MEMORY"] == "4096m"
    assert both.settings[1] == SettingChange("memory", 1024, 2048, 4096, "MiB")
    assert both.factor is None
    after = changed(HEAP, ENV_JAVA_OPTS=once, OWN_MEMORY="2048m")
    assert after.step == {"ENV_JAVA_OPTS": twice, "OWN_MEMORY": "4096m"}


def test_cpus_are_lifted_to_all_of_the_machine() -> None:
    assert changed(OwnLever(cpus=0.5)) == OwnChange(
        {"OWN_CPUS": "1"}, {"OWN_CPUS": "4"}, (SettingChange("cpus", 0.5, 1, 4),), 2.0
    )
    assert changed(OwnLever(cpus=3)).step == {"OWN_CPUS": "4"}
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


@pytest.mark.parametrize("of", [POOL, HEAP, OwnLever(cpus=0.5)])
def test_every_change_is_what_the_host_allows(of: OwnLever) -> None:
    patterns, change = of.patterns, changed(of, 5000)
    for settings in (change.step, change.lift):
        assert settings.keys() == patterns.keys()
        for name, value in settings.items():
            assert matches_in_bash(patterns[name], value)
            other = value.replace("5", "a5", 1) + "$"
            for wrong in (f"{value}x", f"{value};x", f"x{value}", other):
                assert not matches_in_bash(patterns[name], wrong)


def test_only_digits_of_the_text_vary() -> None:
    assert HEAP.patterns == {
        "ENV_JAVA_OPTS": r"-XX:\+UseG1GC -Xms[0-9]{1,9}m -Xmx[0-9]{1,9}m",
        "OWN_MEMORY": "[1-9][0-9]{0,6}[mg]",
    }
    assert OwnLever(cpus=1).patterns == {"OWN_CPUS": CPUS}
    assert not matches_in_bash(HEAP.patterns["ENV_JAVA_OPTS"], "-XX::UseG1GC -Xms1m -Xmx1m")
