"""The bodies of requests that the agent and the control page get."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from lab.errors import WordError

LARGEST_BODY = 10_000


async def body_of(request: Request, largest: int) -> bytes:
    """The body, of at most so many bytes. Raises WordError."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > largest:
            raise WordError(f"the body is too long; allowed: {largest} bytes")
    return bytes(body)


async def json_object(request: Request) -> dict[str, object]:
    """The body as a JSON object of a few kB. Raises WordError."""
    body = await body_of(request, LARGEST_BODY)
    try:
        parsed = msgspec.json.decode(body)  # Unlike Python's, it takes no NaN and no Infinity.
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise WordError("the body is not JSON") from None
    if not isinstance(parsed, dict):
        raise WordError("the body is not a JSON object")
    return parsed
