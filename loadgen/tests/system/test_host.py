"""Real, tiny processes: they end by themselves or are ended at once."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.errors import EngineError, Interrupted, LabError
from lab.system import host
from lab.system.host import HostCpu, Process, System, pin, source_ports
from lab.system.lock import claimed
from support.locks import is_claimed


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "out.txt"


def until(output: Path, text: str) -> None:
    """Returns when a process has written this."""
    while text not in output.read_text():
        time.sleep(0.01)


def begun(script: str, output: Path, *argv: str) -> Process:
    """A process that runs a script of Python and has written that it is ready."""
    process = System().start([sys.executable, "-c", script, *argv], output)
    until(output, "ready")
    return process


def ended(script: str, output: Path) -> Process:
    """A process that ran a script of Python to its end."""
    process = System().start([sys.executable, "-c", script], output)
    while process.poll() is None:
        time.sleep(0.01)
    return process


def test_output_and_errors_go_to_the_file_and_the_status_is_known(output: Path) -> None:
    script = "import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)"
    process = ended(script, output)
    assert process.poll() == 3
    assert output.read_text() == "out\nerr\n"
    assert process.cpu_s() > 0


def test_an_engine_inherits_what_holds_the_lab(tmp_path: Path) -> None:
    with claimed(tmp_path) as held:
        process = System(held=held).start(["sleep", "60"], tmp_path / "out.txt")
    try:
        # As of a driver that was killed: its engine goes on.
        assert is_claimed(tmp_path)
    finally:
        process.stop()
    assert not is_claimed(tmp_path)


@pytest.fixture
def own_cpus() -> Iterator[set[int]]:
    own = os.sched_getaffinity(0)
    yield own
    os.sched_setaffinity(0, own)


def test_a_crowd_on_its_cpu_shows(own_cpus: set[int], tmp_path: Path) -> None:
    os.sched_setaffinity(0, {max(own_cpus)})
    script = "print('ready', flush=True)\nwhile True: pass"
    others = [begun(script, tmp_path / name) for name in "abc"]
    try:
        # Four want the CPU, and each gets a quarter of it. A quota of the tests' container stops
        # all of them alike, and is not asked for.
        crowd = System((tmp_path / "none",)).crowd(1.0)
    finally:
        for other in others:
            other.stop()
    assert 0.4 < crowd[0] <= 1


def test_what_is_busy_beside_it_shows(tmp_path: Path) -> None:
    class Half(System):
        """Three quarters of its time are busy or stolen, on two CPUs; the thread has one."""

        told = 0.0

        def cpus(self) -> int:
            return 2

        def host_cpu(self) -> HostCpu:
            self.told += 100
            return HostCpu(total=self.told, idle=self.told / 4, steal=self.told / 8)

    crowd = Half((tmp_path / "none",)).crowd(0.01)
    assert crowd is not None
    waited, beside = crowd
    # The thread had what it did not wait for of one CPU.
    assert beside == pytest.approx(0.75 - (1 - waited) / 2)


def test_a_crowd_is_unknown_on_several_machines_and_under_a_quota() -> None:
    class Throttled(System):
        told = 0.0

        def throttled_s(self) -> float:
            self.told += 0.1
            return self.told

    assert Throttled().crowd(0.01) is None
    assert System(shared=False).crowd(0.01) is None


def test_a_driver_and_its_engines_keep_to_their_cpus(own_cpus: set[int], output: Path) -> None:
    for cpu_set in ("4000", "x"):
        with pytest.raises(LabError, match=f"LOADGEN_CPUSET={cpu_set} is not a set"):
            pin(cpu_set)
    pin("")
    assert os.sched_getaffinity(0) == own_cpus
    last = max(own_cpus)
    pin(f"{last}")
    ended("import os; print(*os.sched_getaffinity(0))", output)
    assert output.read_text() == f"{last}\n"
    # The container may still use all of its own, which a spinner takes its share of.
    assert System().own_cpus() == len(own_cpus)
    assert os.sched_getaffinity(0) == {last}


def test_stop_ends_the_whole_process_group(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "GRACE_S", 60.0)
    child = "import time; print('ready', flush=True); time.sleep(60)"
    process = begun(
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])", output
    )
    process.stop()
    assert process.poll() == -signal.SIGTERM
    process.stop()
    with pytest.raises(EngineError, match="cannot start no-such-engine"):
        System().start(["no-such-engine"], output)


def test_a_signal_is_heard_at_the_next_wait() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    try:
        system = System()
        system.catch_signals()
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Interrupted, match="SIGTERM"):
            system.sleep(60)
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def test_the_hosts_counters_can_be_read_and_compared() -> None:
    cpu = System().host_cpu()
    assert cpu.total >= cpu.idle > 0
    # On several machines it would be the wrong one's.
    assert System(shared=False).host_cpu() is None
    before = HostCpu(total=100, idle=50, steal=1)
    assert HostCpu(total=200, idle=60, steal=6).shares_since(before) == (pytest.approx(0.85), 0.05)
    assert before.shares_since(before) is None


def test_turns_count_threads_that_have_ended(output: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    script = (
        "import pathlib, sys, threading, time\n"
        "worked, go = threading.Barrier(4), threading.Event()\n"
        "def work():\n"
        "    for _ in range(20): threading.Event().wait(0.001)\n"
        "    worked.wait(); go.wait()\n"
        "ts = [threading.Thread(target=work) for _ in range(3)]\n"
        "[t.start() for t in ts]\n"
        "worked.wait(); print('ready', flush=True)\n"
        "while not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.01)\n"
        "go.set(); [t.join() for t in ts]; print('joined', flush=True); time.sleep(60)\n"
    )
    process = begun(script, output, str(go))
    with_threads = process.turns()
    go.touch()
    until(output, "joined")
    without = process.turns()
    process.stop()
    # Three threads of some twenty turns each.
    assert without.slices >= with_threads.slices >= 60
    assert without.wait_s >= with_threads.wait_s >= 0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("usage_usec 5\nnr_periods 9\nthrottled_usec 2500000\nnr_bursts 0\n", 2.5),
        ("nr_periods 9\nnr_throttled 3\nthrottled_time 1500000000\n", 1.5),
        ("usage_usec 5\n", None),
    ],
)
def test_cgroups_of_both_versions(tmp_path: Path, text: str, seconds: float | None) -> None:
    assert (System().throttled_s() or 0) >= 0
    file = tmp_path / "cpu.stat"
    file.write_text(text)
    assert System((tmp_path / "none", file)).throttled_s() == seconds


def test_resent_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (System().resent() or 0) >= 0
    files = {name: tmp_path / name for name in ("NET_SNMP", "NET_STAT")}
    for name, file in files.items():
        monkeypatch.setattr(host, name, file)
    files["NET_SNMP"].write_text("Ip: InReceives\nIp: 9\nTcp: MaxConn RetransSegs\nTcp: -1 56\n")
    assert System().resent() is None
    files["NET_STAT"].write_text("TcpExt: Resets TCPSynRetrans\nTcpExt: 3 7\nIpExt: In\nIpExt: 1\n")
    assert System().resent() == 49


def test_pressure_is_known_where_the_kernel_has_psi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "CPU_PRESSURE", tmp_path / "cpu")
    assert System().pressure_s() is None
    averages = "avg10=0.00 avg60=1.20 avg300=0.31"
    text = f"some {averages} total=2500000\nfull {averages} total=9000000\n"
    host.CPU_PRESSURE.write_text(text)
    assert System().pressure_s() == 2.5
    # On several machines it would be the wrong one's.
    assert System(shared=False).pressure_s() is None


def test_open_sockets_are_counted(output: Path) -> None:
    opens = (
        "import socket, time; kept = [socket.socket() for _ in range(7)]; "
        "print('ready', flush=True); time.sleep(60)"
    )
    process = begun(opens, output)
    assert process.sockets() == 7
    process.stop()
    assert process.sockets() is None


def test_the_kernel_tells_how_many_ports_there_are(tmp_path: Path) -> None:
    path = tmp_path / "ports"
    assert source_ports(path) is None
    path.write_text("10000\t65535\n")
    assert source_ports(path) == 55_536
