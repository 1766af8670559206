"""Bodies of requests: what is too long is refused before the rest of it is read."""

import asyncio
import re
from pathlib import Path

import pytest
from starlette.requests import Request

from lab import live
from lab.errors import WordError
from lab.live.http import body_of, decoded
from lab.system.agent import Attention

CHUNK = b"x" * 600


def coming(chunks: int, chunk: bytes = CHUNK) -> tuple[Request, list[int]]:
    """A request whose body comes in chunks, and how many of them were taken."""
    taken: list[int] = []

    async def receive() -> dict[str, object]:
        taken.append(1)
        return {"type": "http.request", "body": chunk, "more_body": len(taken) < chunks}

    return Request({"type": "http", "method": "POST", "headers": []}, receive), taken


def test_of_a_body_that_is_too_long_the_rest_is_not_read() -> None:
    request, taken = coming(3)
    assert asyncio.run(body_of(request, 1800)) == CHUNK * 3
    for read, most in (
        (lambda request: body_of(request, 1000), 1000),
        (lambda request: decoded(request, Attention), 10_000),
    ):
        request, taken = coming(1000)
        with pytest.raises(WordError, match=f"the body is too long; allowed: {most} bytes"):
            asyncio.run(read(request))
        assert len(taken) == most // len(CHUNK) + 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "truncated"),
        (b'{"servers":["\xff"],"expires_s":1}', "'utf-8'"),
        (b'{"servers":[],"expires_s":NaN}', "malformed"),
        (b"[" * 9000, "Expected `object`, got `array`"),
        (b"{}", "missing required field `servers`"),
        (b'{"servers":[],"expires_s":1,"\x7f":1}', "unknown field `\\x7f`"),
    ],
)
def test_a_body_of_another_kind_is_refused_in_one_line(body: bytes, message: str) -> None:
    with pytest.raises(WordError, match=re.escape(message)) as refused:
        asyncio.run(decoded(coming(1, body)[0], Attention))
    assert str(refused.value).isprintable()


def test_nobody_reads_a_body_in_another_way() -> None:
    (folder,) = map(Path, live.__path__)
    sources = {path.name: path.read_text() for path in folder.rglob("*.py")}
    whole = re.compile(r"\brequest\.(?:body|json|form|stream)\(")
    assert [name for name, text in sources.items() if whole.search(text)] == ["http.py"]
