"""Bodies of requests: what is too long is refused before the rest of it is read."""

from __future__ import annotations

import asyncio

import pytest
from starlette.requests import Request

from lab.errors import WordError
from lab.live.http import body_of

CHUNK = b"x" * 600


def coming(chunks: int) -> tuple[Request, list[int]]:
    """A request whose body comes in chunks, and how many of them were taken."""
    taken: list[int] = []

    async def receive() -> dict[str, object]:
        taken.append(1)
        return {"type": "http.request", "body": CHUNK, "more_body": len(taken) < chunks}

    return Request({"type": "http", "method": "POST", "headers": []}, receive), taken


def test_a_body_that_is_allowed_is_read_whole() -> None:
    request, taken = coming(3)
    assert asyncio.run(body_of(request, 1800)) == CHUNK * 3
    assert len(taken) == 3


def test_of_a_body_that_is_too_long_the_rest_is_not_read() -> None:
    request, taken = coming(1000)
    with pytest.raises(WordError, match="the body is too long; allowed: 1000 bytes"):
        asyncio.run(body_of(request, 1000))
    assert len(taken) == 2
