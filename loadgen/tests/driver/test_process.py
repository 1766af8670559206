"""Real, tiny processes: they end by themselves or are ended at once."""

import signal
import sys
from pathlib import Path

import pytest

from lab.errors import EngineError, Interrupted
from lab.process import HostCpu, Linux, interrupt_at_once


def test_output_and_errors_go_to_the_file_and_the_status_is_known(tmp_path: Path) -> None:
    output = tmp_path / "out.txt"
    script = "import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)"
    system = Linux()
    process = system.start([sys.executable, "-c", script], output)
    while (status := process.poll()) is None:
        system.sleep(0.01)
    assert status == 3
    assert output.read_text() == "out\nerr\n"
    assert process.cpu_s() > 0


def test_stop_ends_the_whole_process_group(tmp_path: Path) -> None:
    child = "import time; print('ready', flush=True); time.sleep(60)"
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    output = tmp_path / "out.txt"
    system = Linux()
    process = system.start([sys.executable, "-c", script], output)
    while "ready" not in output.read_text():
        system.sleep(0.01)
    process.stop()
    assert process.poll() == -signal.SIGTERM
    process.stop()


def test_a_missing_engine_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot start no-such-engine"):
        Linux().start(["no-such-engine"], tmp_path / "out.txt")


def test_a_signal_is_heard_at_the_next_wait() -> None:
    before = [(n, signal.getsignal(n)) for n in (signal.SIGINT, signal.SIGTERM)]
    try:
        system = Linux()
        system.catch_signals()
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Interrupted, match="SIGTERM"):
            system.sleep(60)
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def test_at_once_means_in_the_middle_and_only_once() -> None:
    before = [(n, signal.getsignal(n)) for n in (signal.SIGINT, signal.SIGTERM)]
    try:
        interrupt_at_once()
        with pytest.raises(Interrupted, match="SIGINT"):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def test_shares_of_the_host() -> None:
    before = HostCpu(total=100, idle=50, steal=1)
    assert HostCpu(total=200, idle=60, steal=6).shares_since(before) == (0.9, 0.05)
    assert before.shares_since(before) is None


def test_the_hosts_counters_can_be_read() -> None:
    cpu = Linux().host_cpu()
    assert cpu is not None
    assert cpu.total >= cpu.idle > 0
