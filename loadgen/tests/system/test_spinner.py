"""The spinner takes its share, tells what it took, and ends on every path."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from lab.errors import EngineError, Interrupted, LabError
from lab.system import spinner
from lab.system.host import Process, System
from lab.system.spinner import PERIOD_S, spin, spinning
from support.system import FakeProcess, FakeSystem


class Cpu:
    """A CPU whose time a test gives out: one look at the clocks takes 1 ms of it, of which this
    process gets `got`."""

    def __init__(self, got: float = 1.0) -> None:
        self.got = got
        self.now_s = self.used_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def process_time(self) -> float:
        self.now_s += 0.001
        self.used_s += 0.001 * self.got
        return self.used_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def cpu(monkeypatch: pytest.MonkeyPatch) -> Cpu:
    cpu = Cpu()
    monkeypatch.setattr(spinner, "time", cpu)
    return cpu


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5])
def test_a_share_of_the_time_is_used(cpu: Cpu, share: float) -> None:
    spin(os.getppid(), share, 20.0)
    # The looks at the clocks of a period are beyond its share.
    assert cpu.used_s / cpu.now_s == pytest.approx(share, abs=0.003 / PERIOD_S)
    assert cpu.now_s == pytest.approx(20.0, abs=2 * PERIOD_S)


def test_what_it_cannot_get_is_not_taken_later(cpu: Cpu) -> None:
    for got, used_s in ((0.1, pytest.approx(2.0, abs=0.2)), (1.0, pytest.approx(10.0, abs=0.7))):
        cpu.got, cpu.now_s, cpu.used_s = got, 0.0, 0.0
        spin(os.getppid(), 0.5, 20.0)
        assert cpu.used_s == used_s


def test_each_cpu_has_a_spinner_while_the_block_lasts(system: FakeSystem) -> None:
    with spinning(system, None, 60.0) as of:
        assert of.taken_s() is None
    system.free_cpus = 1
    with pytest.raises(LabError, match="1 of 2 CPUs: the driver"), spinning(system, 0.2, 60.0):
        pass
    assert system.spinners == []
    system.free_cpus = 2
    with spinning(system, 0.2, 60.0) as of:
        system.sleep(5.0)
        assert of.taken_s() == pytest.approx(1.0)
        assert [spinner.poll() for spinner in system.spinners] == [None, None]
    assert all(spinner.stopped_early for spinner in system.spinners)


def test_it_ends_however_the_block_is_left(system: FakeSystem) -> None:
    with pytest.raises(Interrupted), spinning(system, 0.2, 60.0):
        raise Interrupted("stopped by SIGINT")
    assert [spinner.stopped_early for spinner in system.spinners] == [True, True]


def test_the_first_ends_where_the_second_cannot_start() -> None:
    class Short(FakeSystem):
        def start(self, argv: Sequence[str], output: Path, stdin: str = "") -> FakeProcess:
            if self.spinners:
                raise EngineError("cannot start")
            return super().start(argv, output, stdin)

    system = Short()
    with pytest.raises(EngineError), spinning(system, 0.2, 60.0):
        pass
    assert [one.stopped_early for one in system.spinners] == [True]


def test_real_processes_spin_and_are_gone_afterwards() -> None:
    system = System()
    processes: list[Process] = []
    with spinning(system, 0.05, 600.0) as of:
        processes += of.processes
        while not of.taken_s():
            system.sleep(0.01)
        assert all(process.poll() is None for process in processes)
    assert all(process.poll() is not None for process in processes)


def test_it_does_not_outlive_the_driver(cpu: Cpu) -> None:
    spin(-1, 0.5, 20.0)
    assert cpu.now_s == 0
