"""CPU sets as the kernel and Docker write them."""

import pytest

from lab.model.cpu_sets import cpus_of
from support.fakes import snapshot


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("", set()), ("3", {3}), ("0-1", {0, 1}), ("0-1,4", {0, 1, 4}), ("2,8-10", {2, 8, 9, 10})],
)
def test_a_set_is_its_cpus(text: str, cpus: set[int]) -> None:
    assert cpus_of(text) == cpus


@pytest.mark.parametrize("text", ["a", "1-b", "0..3"])
def test_what_is_no_set_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        cpus_of(text)


@pytest.mark.parametrize(("value", "count"), [("4-7", 4), ("", None), (None, None)])
def test_a_server_tells_how_many_cpus_it_is_kept_to(value: str | None, count: int | None) -> None:
    assert snapshot(settings={"cpuset": value}).cpu_set == count
    assert snapshot(settings={}).cpu_set is None
