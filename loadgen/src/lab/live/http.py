"""The HTTP client that the agent and the control page ask the lab's parts with."""

from __future__ import annotations

import httpx

from lab.system.http import USER_AGENT


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
