import dataclasses

import httpx
import pytest

from lab.system.stack import Stack, Urls
from support.fakes import IDENTITY, FakeEngine, FakeLab, FakeSystem
from support.toxiproxy import FakeToxiproxy


@pytest.fixture
def fake_lab(system: FakeSystem) -> FakeLab:
    return FakeLab(
        clock=system.monotonic,
        identities={name: dataclasses.replace(IDENTITY, model=name) for name in ("a", "b")},
        pool_sizes={"a": 200, "b": None},
    )


@pytest.fixture
def stack(fake_lab: FakeLab) -> Stack:
    return Stack(Urls.read({}), httpx.MockTransport(fake_lab.answer))


@pytest.fixture
def system() -> FakeSystem:
    return FakeSystem()


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def toxiproxy() -> FakeToxiproxy:
    return FakeToxiproxy()
