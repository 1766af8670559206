"""Async tests (anyio's plugin) run on asyncio, as the agent does."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
