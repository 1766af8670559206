"""The network path to another part of the lab, as TCP measures it."""

import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass

# The quickest of these connections counts.
CONNECTIONS = 5
# Longer than TCP waits before it sends a lost attempt again (1 s).
DEADLINE_S = 2.5
# tcpi_pmtu and tcpi_min_rtt (µs) of struct tcp_info (linux/tcp.h, from Linux 4.6 on).
_INFO_BYTES, _PMTU_AT, _MIN_RTT_AT = 152, 60, 148
# The kernel has timed none.
_UNTIMED = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Reached:
    """One round trip in ms, and the largest packet in bytes."""

    ms: float
    mtu: int


Reach = Callable[[str, int], Reached | None]


def reach(host: str, port: int) -> Reached | None:
    """Connect, and send nothing: only the kernels of both sides take part. None without a
    connection, or if the system has no such figures."""
    timed = []
    for _ in range(CONNECTIONS):
        try:
            with socket.create_connection((host, port), DEADLINE_S) as connection:
                info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
        except TimeoutError:
            continue
        except OSError:
            return None
        if len(info) < _INFO_BYTES:
            return None
        (mtu,), (us,) = (struct.unpack_from("I", info, at) for at in (_PMTU_AT, _MIN_RTT_AT))
        if us != _UNTIMED:
            timed.append(Reached(us / 1000, mtu))
    return min(timed, key=lambda reached: reached.ms, default=None)
