"""Bodies of requests to the agent and the control page, and of their answers."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse

from lab.errors import Refused, WordError

LARGEST_BODY = 10_000


class Json(JSONResponse):
    """Also of dataclasses and Structs."""

    def render(self, content: object) -> bytes:
        return msgspec.json.encode(content)


async def body_of(request: Request, largest: int) -> bytes:
    """The body, of at most so many bytes. Raises WordError."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > largest:
            raise WordError(f"the body is too long; allowed: {largest} bytes")
    return bytes(body)


async def decoded[T](request: Request, kind: type[T]) -> T:
    """The body, JSON of this type. Raises WordError."""
    body = await body_of(request, LARGEST_BODY)
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as failure:
        raise WordError(f"the body is wrong: {failure}") from None


async def refuse(_: Request, failure: Exception) -> Json:
    """The answer to a LabError: 400 for a wrong request, 502 for a part that is away."""
    return Json({"error": str(failure)}, 400 if isinstance(failure, WordError | Refused) else 502)
