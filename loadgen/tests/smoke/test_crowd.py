"""Thousands of connections at once through Toxiproxy on a busy machine: none is lost."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

CROWD = 5000
# A slow machine takes longer, and loses none.
PATIENCE_S = 120.0
SPIN = "while True: pass"
REQUEST = b"GET / HTTP/1.1\r\nHost: toxiproxy\r\nConnection: close\r\n\r\n"


@pytest.fixture
def busy() -> Iterator[None]:
    """Every CPU has something else to do."""
    spinners = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(os.cpu_count() or 1)]
    yield
    for one in spinners:
        one.kill()
        one.wait()


async def call() -> str:
    """The status line of an answer on a new connection, or what went wrong."""
    try:
        reader, writer = await asyncio.open_connection("toxiproxy", 8666)
        with contextlib.closing(writer):
            writer.write(REQUEST)
            return (await reader.readline()).decode().strip()
    except OSError as failure:
        return str(failure)


@pytest.mark.usefixtures("busy")
def test_none_of_a_crowd_is_lost_on_its_way_through_toxiproxy() -> None:
    async def crowd() -> Counter[str]:
        async with asyncio.timeout(PATIENCE_S):
            return Counter(await asyncio.gather(*(call() for _ in range(CROWD))))

    assert asyncio.run(crowd()) == {"HTTP/1.1 200 OK": CROWD}
