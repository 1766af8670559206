"""CPU sets as the kernel and Docker write them."""

import pytest

from lab.model.host_facts import cpus_of
from support.fakes import snapshot


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("", set()), ("3", {3}), ("0-1", {0, 1}), ("0-1,4", {0, 1, 4}), ("2,8-10", {2, 8, 9, 10})],
)
def test_a_set_is_its_cpus(text: str, cpus: set[int]) -> None:
    assert cpus_of(text) == cpus
    # A server that is kept to some tells how many.
    assert snapshot(settings={"cpuset": text}).cpu_set == (len(cpus) or None)


@pytest.mark.parametrize("text", ["a", "1-b", "0..3"])
def test_what_is_no_set_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        cpus_of(text)
    assert [snapshot(settings=of).cpu_set for of in ({}, {"cpuset": None})] == [None, None]
