"""An answer whose JSON is nested too deeply is one that cannot be read, whoever gives it."""

import asyncio
from collections.abc import Callable

import httpx
import pytest

from lab.errors import LabUnreachable
from lab.live.agent.watch import ToxicsWatch
from lab.live.clock import Clock
from lab.system.http import Http
from lab.system.management import Management
from lab.system.prometheus import Prometheus
from lab.system.toxiproxy import Toxiproxy

NESTED = httpx.MockTransport(lambda request: httpx.Response(200, text="[" * 100_000))


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda http: Management(http).settings("a"), "does not answer with a JSON object"),
        (
            lambda http: Prometheus("http://p", http).values("up", 1.0),
            "prometheus: .* does not answer with JSON",
        ),
        (lambda http: Toxiproxy(http, "http://t").in_force(), "cannot read its proxies"),
    ],
)
def test_a_nested_answer_is_none(ask: Callable[[Http], object], says: str) -> None:
    with pytest.raises(LabUnreachable, match=says):
        ask(Http(NESTED))


def test_the_agent_outlives_a_nested_answer() -> None:
    async def look() -> object:
        watch = ToxicsWatch("http://toxiproxy", Clock())
        async with httpx.AsyncClient(transport=NESTED) as client:
            await watch.look(client)
        return watch.seen

    assert asyncio.run(look()) is None
