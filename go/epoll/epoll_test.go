package epoll

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func newPoll(t *testing.T) *Poll {
	t.Helper()
	p, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func newPair(t *testing.T) [2]int {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Close(pair[0])
		_ = unix.Close(pair[1])
	})
	return pair
}

// each runs a check with both ways to wait, to the nanosecond and in milliseconds.
func each(t *testing.T, check func(name string, p *Poll, wait func(time.Duration) []unix.EpollEvent)) {
	defer coarse.Store(false)
	for _, coarsely := range []bool{false, true} {
		coarse.Store(coarsely)
		name := map[bool]string{false: "to the nanosecond", true: "in milliseconds"}[coarsely]
		p := newPoll(t)
		check(name+", short", p, p.Wait)
		p = newPoll(t)
		check(name+", long", p, func(left time.Duration) []unix.EpollEvent { return p.WaitLong(&left) })
	}
}

func TestAWaitIsNotShorterThanAsked(t *testing.T) {
	each(t, func(name string, _ *Poll, wait func(time.Duration) []unix.EpollEvent) {
		asked, start := 1500*time.Microsecond, time.Now()
		if events := wait(asked); len(events) != 0 {
			t.Errorf("%s: %v", name, events)
		}
		if took := time.Since(start); took < asked {
			t.Errorf("%s: waited %v of %v", name, took, asked)
		}
	})
}

func TestAWakeUpEndsAWaitOnce(t *testing.T) {
	each(t, func(name string, p *Poll, wait func(time.Duration) []unix.EpollEvent) {
		p.Wake()
		if events := wait(time.Hour); len(events) != 1 || events[0].Fd != Woken {
			t.Errorf("%s: %v", name, events)
		}
		if events := p.Look(); len(events) != 0 {
			t.Errorf("%s: once more: %v", name, events)
		}
		p.Wake()
		if events := p.WaitLong(nil); len(events) != 1 {
			t.Errorf("%s, without an end: %v", name, events)
		}
	})
}

// A change of a socket is reported once, under its key, also where it came during a nap.
func TestAChangeIsReportedOnceWithItsKey(t *testing.T) {
	p, pair := newPoll(t), newPair(t)
	if err := p.Add(pair[0], unix.EPOLLIN, 7, 3); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 10)
	if n, err := Read(pair[0], buffer); n != 0 || err != unix.EAGAIN {
		t.Error(n, err)
	}
	if left, err := Write(pair[1], []byte("abc")); left != nil || err != nil {
		t.Error(left, err)
	}
	if events := p.Doze(time.Microsecond); len(events) != 1 || events[0].Fd != 7 || events[0].Pad != 3 || events[0].Events != unix.EPOLLIN {
		t.Error(events)
	}
	if events := p.Look(); len(events) != 0 {
		t.Error("once more:", events)
	}
	if n, err := Read(pair[0], buffer); string(buffer[:n]) != "abc" || err != nil {
		t.Error(n, err)
	}
}

// What a socket has no room for is left, and is written when there is room again.
func TestWhatASocketHasNoRoomForIsLeft(t *testing.T) {
	pair := newPair(t)
	data := make([]byte, 8<<20)
	left, err := Write(pair[0], data)
	if err != nil || len(left) == 0 || len(left) == len(data) {
		t.Fatal(len(left), err)
	}
	if same, err := Write(pair[0], left); len(same) != len(left) || err != nil {
		t.Error(len(same), err)
	}
	got, buffer := 0, make([]byte, 64<<10)
	for got < len(data) {
		n, err := Read(pair[1], buffer)
		if err != nil {
			t.Fatal(got, len(left), err)
		}
		got += n
		if left, err = Write(pair[0], left); err != nil {
			t.Fatal(err)
		}
	}
	if len(left) != 0 {
		t.Error(len(left))
	}
	_ = unix.Shutdown(pair[1], unix.SHUT_RD)
	if left, err := Write(pair[0], data); left != nil || err != unix.EPIPE {
		t.Error(len(left), err)
	}
}
