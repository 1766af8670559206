"""Whole searches on simulated servers, which share neither code nor a distribution with the fit."""

import pytest

from support.queue_server import WORLDS
from support.simulated_search import search

# The rates that half of the trials meet, by `queue_server.truth` (15 s, p99 of 500 ms).
TRUTH = {"quiet": 989.5, "ordinary": 987.5, "jvms": 993.0, "stalls": 951.6}


@pytest.mark.parametrize("name", TRUTH)
def test_the_interval_of_a_search_holds_the_truth(name: str) -> None:
    """The draws are seeded, so this is no matter of luck: these searches are always the same."""
    found = [search(WORLDS[name], seed, 3).half for seed in range(1, 9)]
    held = [each.low <= TRUTH[name] <= each.high for each in found]
    assert sum(held) >= 7
    assert all(abs(each.value / TRUTH[name] - 1) < 0.15 for each in found)
