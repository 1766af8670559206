"""What TCP tells of a way, asked of this machine's own."""

import socket

from lab.system.network import reach


def test_a_way_has_a_round_trip_and_the_packet_that_it_takes() -> None:
    # Both are bound, so that nothing else can listen there meanwhile.
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as silent:
        found = reach("127.0.0.1", listener.getsockname()[1])
        silent.bind(("127.0.0.1", 0))
        assert reach("127.0.0.1", silent.getsockname()[1]) is None
    # Within one machine: less than a second, and the packets of its loopback device.
    assert 0 < found.ms < 1000
    assert 1280 <= found.mtu <= 65_535
