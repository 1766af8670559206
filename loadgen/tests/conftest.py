import functools
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import vl_convert
from hypothesis import settings

from support.fakes import FakeEngine, FakeLab
from support.runs import plans, write_manifest, write_raw
from support.system import FakeSystem
from support.toxiproxy import FakeToxiproxy

# OpenBLAS's threads spin while they wait for each other: on CPUs that others use, too, a product of
# small matrices takes twenty times as long with two of them.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
# The same examples in each run, and no deadline: a slow machine is no fault.
settings.register_profile("lab", deadline=None, derandomize=True, database=None)
settings.load_profile("lab")


@pytest.fixture(scope="session", autouse=True)
def quick() -> Iterator[None]:
    """No test waits for a disk, and what several tests draw is drawn once: together they were half
    of the time of a bench on fakes."""
    draw = vl_convert.vegalite_to_svg
    drawn = functools.cache(lambda text: draw(json.loads(text)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "vegalite_to_svg", lambda spec: drawn(json.dumps(spec)))
        # It fails, too, if no file is open.
        patch.setattr(os, "fsync", os.fstat)
        yield


@pytest.fixture
def lab() -> FakeLab:
    return FakeLab()


@pytest.fixture
def outside(lab: FakeLab) -> FakeLab:
    """The lab with a service that is not its own, which has a JMX exporter that is scraped."""
    lab.foreign = {"my-service"}
    lab.scraped_jvms = {"my-service"}
    return lab


@pytest.fixture
def system(lab: FakeLab) -> FakeSystem:
    return lab.system


@pytest.fixture
def engine(lab: FakeLab) -> FakeEngine:
    return lab.engine


@pytest.fixture
def toxiproxy() -> FakeToxiproxy:
    return FakeToxiproxy()


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """The folder of a run as it was measured, before anything is derived from it."""
    folder = write_manifest(tmp_path)
    write_raw(folder, plans())
    return folder
