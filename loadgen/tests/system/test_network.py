"""What TCP tells of a way, asked of this machine's own."""

import socket

from lab.system.network import reach


def test_a_way_has_a_round_trip_and_the_packet_that_it_takes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = reach("127.0.0.1", listener.getsockname()[1])
    # Within one machine: less than a second, and the packets of its loopback device.
    assert 0 < found.ms < 1000
    assert 1280 <= found.mtu <= 65_535


def test_where_nobody_listens_there_is_none() -> None:
    # Bound, so that nobody else can listen there meanwhile.
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        assert reach("127.0.0.1", silent.getsockname()[1]) is None
