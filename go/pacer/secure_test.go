// Tests of TLS on a socket that has no room.
package main

import (
	"testing"

	"golang.org/x/sys/unix"

	"lab/epoll"
)

func TestWhatTheSocketHadNoRoomForIsWrittenLater(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	s := &secure{wire: &wire{fd: pair[0]}}
	sent, got, buffer := make([]byte, 8<<20), 0, make([]byte, 64<<10)
	if n, err := s.wire.Write(sent); n != len(sent) || err != nil || len(s.wire.pending) == 0 {
		t.Fatal(n, err, len(s.wire.pending))
	}
	for got < len(sent) {
		n, err := epoll.Read(pair[1], buffer)
		if err == nil {
			err = s.write(nil)
		}
		if err != nil {
			t.Fatal(got, err)
		}
		got += n
	}
	if len(s.wire.pending) > 0 {
		t.Error(len(s.wire.pending))
	}
}
