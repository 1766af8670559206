"""HTTP as the agent and the control page have it in common: their client, and bodies they get."""

from __future__ import annotations

import json

import httpx
from starlette.requests import Request

from lab.errors import WordError
from lab.system.http import USER_AGENT

LARGEST_BODY = 10_000


def new_client(
    deadline_s: float, transport: httpx.AsyncBaseTransport | None = None
) -> httpx.AsyncClient:
    """A client whose calls end within the deadline. ``transport`` is the seam for tests."""
    return httpx.AsyncClient(
        transport=transport,
        timeout=deadline_s,
        headers={"User-Agent": USER_AGENT},
        trust_env=False,
        verify=False,  # noqa: S501 - plain http inside the lab; loading certificates costs CPU
    )


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
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        raise WordError("the body is not JSON") from None
    if not isinstance(parsed, dict):
        raise WordError("the body is not a JSON object")
    return parsed
