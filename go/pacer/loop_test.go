// Tests of when a loop reads what came, and of what it then takes for the time of an answer.
package main

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lab/epoll"
)

// idle is a loop that has run for 10 s, whose next request is due after a time, with so many free connections.
func idle(t *testing.T, due time.Duration, free int, change map[string]any) *loop {
	t.Helper()
	l := read(t, change)
	var end atomic.Int64
	end.Store(int64(time.Hour))
	o, err := newLoop(l, 0, 1, func() time.Duration { return 10 * time.Second }, &end, make(chan *tally, 20), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.shut)
	o.noted, o.secondEnd, o.dueAt = true, 11*time.Second, 10*time.Second+due
	for range free {
		c := o.toOpen.first
		c.group.free.push(c, 9*time.Second)
	}
	for o.toOpen.first != nil {
		o.inFlight.push(o.toOpen.first, 9*time.Second)
	}
	return o
}

// Answers may wait for the next request that is due, but never one of those for an answer, and never for long.
func TestWhenALoopMayDoze(t *testing.T) {
	other := []any{wish(nil), wish(map[string]any{"url": "http://127.0.0.2:1/"})}
	for name, one := range map[string]struct {
		due    time.Duration
		free   int
		change map[string]any
		with   func(*loop)
		dozes  bool
	}{
		"soon":                    {time.Millisecond / 2, 2, nil, nil, true},
		"later":                   {3 * time.Millisecond, 2, nil, nil, false},
		"now":                     {0, 2, nil, nil, false},
		"no connection is free":   {time.Millisecond / 2, 0, nil, nil, false},
		"none of a host is free":  {time.Millisecond / 2, 1, map[string]any{"requests": other}, nil, false},
		"much came":               {time.Millisecond / 2, 2, nil, func(o *loop) { o.prompt = o.clock() + 1 }, false},
		"more is to be read":      {time.Millisecond / 2, 2, nil, func(o *loop) { o.more = []*connection{&o.connections[0]} }, false},
		"the kernel says nothing": {time.Millisecond / 2, 2, nil, func(o *loop) { o.came(&o.connections[0]) }, false},
	} {
		o := idle(t, one.due, one.free, one.change)
		if one.with != nil {
			one.with(o)
		}
		if left, dozes := o.nap(); dozes != one.dozes || left > longestNap || dozes && left != one.due {
			t.Error(name, left, dozes)
		}
	}
}

// A loop that sent late looks at every event for a while: each is a chance to get a processor.
func TestALateLoopIsPrompt(t *testing.T) {
	for late, dozes := range map[time.Duration]bool{tooLate: true, tooLate + 1: false} {
		o := idle(t, -late, 2, map[string]any{"rate": 0.001})
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		o.connections[0].fd, o.connections[1].fd = pair[0], pair[1]
		o.send(o.clock())
		o.dueAt = o.clock() + time.Millisecond/2
		if _, told := o.nap(); told != dozes || o.now.Sent != 1 {
			t.Error("late by", late, "it dozes:", told)
		}
	}
}

// The kernel says when bytes came, whenever they are read.
func TestTheKernelSaysWhenBytesCame(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	from, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	file, err := accepted.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fd := int(file.Fd())
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		t.Fatal(err)
	}
	var reader epoll.DatedReader
	buffer := make([]byte, 100)
	// The kernel begins to note it a moment after it is asked to for the first time.
	within(t, "a time is told", func() bool {
		before := time.Now().UnixNano()
		_, _ = from.Write([]byte("abc"))
		after := time.Now().UnixNano()
		time.Sleep(5 * time.Millisecond)
		n, err := reader.Read(fd, buffer)
		if when := reader.Came.Nano(); err != nil || n != 3 || string(buffer[:3]) != "abc" || when != 0 && (when < before || when > after) {
			t.Fatalf("%d bytes at %d, written between %d and %d: %v", n, when, before, after, err)
		}
		return reader.Came.Nano() != 0
	})
	_ = from.Close()
	if n, err := reader.Read(fd, buffer); n != 0 || err != nil || reader.Came.Nano() != 0 {
		t.Error("after the end:", n, err, reader.Came)
	}
}

// Where a socket has no room for a request, its other side may wait for its own bytes to be read.
func TestARequestWithoutRoomLetsNoAnswerStand(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	o := idle(t, time.Second, 2, nil)
	c := o.inFlight.first
	for room, prompt := range map[int]time.Duration{1 << 10: 0, 8 << 20: o.clock() + promptFor} {
		c.fd, c.out, o.prompt = pair[0], make([]byte, room), 0
		if !o.write(c) || o.prompt != prompt || c.unwritten() != (prompt > 0) {
			t.Error(room, o.prompt, len(c.out))
		}
		for err = nil; err == nil; _, err = epoll.Read(pair[1], o.buffer[:]) {
		}
	}
	c.fd = -1
}

// An answer ends when its bytes came, and not when they are read; unless the clock was set in between.
func TestAnAnswerEndsWhenItCame(t *testing.T) {
	for ago, least := range map[time.Duration]time.Duration{300 * time.Millisecond: 700 * time.Millisecond, 2 * time.Second: time.Second, -time.Hour: time.Second} {
		o := idle(t, time.Second, 2, nil)
		c := o.inFlight.first
		c.request, c.due, c.answer.status = o.load.requests[0], 9*time.Second, 200
		from := time.Now()
		o.reader.Came = unix.NsecToTimespec(from.Add(-ago).UnixNano())
		o.answered(c, false)
		if took := o.now.Raw.max; took > least || took < least-time.Since(from)-time.Millisecond || o.now.Corrected.max != took || c.since != 9*time.Second+took {
			t.Errorf("%v ago: %v", ago, took)
		}
	}
}

// Where even the reason of a failed attempt cannot be read, why not is the reason.
func TestAFailedAttemptHasAReason(t *testing.T) {
	o := idle(t, time.Second, 2, nil)
	c := o.inFlight.first
	// A pipe has no such reason.
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[1])
	c.fd = pipe[0]
	o.opening.push(c, 9*time.Second)
	o.happened(c, unix.EPOLLOUT)
	if told := o.now.ConnectFailed; len(told) != 1 || told["ENOTSOCK"] != 1 {
		t.Error(told)
	}
}
