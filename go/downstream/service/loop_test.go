// Tests of one event loop, without its thread: the test calls its rounds.
package service

import (
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lab/epoll"
)

// clients ask one loop over socket pairs. They see an answer and ask again whenever the loop looks at the
// clock, and each look takes a fixed time. So nothing depends on the machine.
type clients struct {
	t                *testing.T
	loop             *loop
	delay, now, look time.Duration
	poll             *epoll.Poll
	// asked is when each connection asked last, toAsk how many requests are left, got how many answers
	// came, waited the sum of what they took beyond the delay.
	asked      map[int]time.Duration
	toAsk, got int
	// rests are how often the loop rested.
	rests   int
	waited  time.Duration
	answers strings.Builder
}

// newClients has so many of them connected. They ask again as long as toAsk is left.
func newClients(t *testing.T, connections int, delay, look time.Duration) *clients {
	t.Helper()
	c := &clients{t: t, look: look, delay: delay, asked: map[int]time.Duration{}}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	traffic, err := NewTraffic(listener.(*net.TCPListener), constant(delay), c.told)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(traffic.release)
	traffic.rest = func(left time.Duration) { c.now += left }
	if c.poll, err = epoll.New(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.poll.Close)
	c.loop = traffic.loops[0]
	for range connections {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(pair[0]) })
		if err := c.loop.add(pair[1], unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP); err != nil {
			t.Fatal(err)
		}
		if err := c.poll.Add(pair[0], unix.EPOLLIN, int32(pair[0]), 0); err != nil {
			t.Fatal(err)
		}
		c.asked[pair[0]] = 0
	}
	return c
}

func (c *clients) ask(fd int, request string) {
	if n, err := unix.Write(fd, []byte(request)); n != len(request) {
		c.t.Fatal(n, err)
	}
	c.asked[fd] = c.now
}

// told is the loop's clock.
func (c *clients) told() time.Duration {
	c.now += c.look
	var into [4096]byte
	for {
		events := c.poll.Look()
		for _, event := range events {
			fd := int(event.Fd)
			n, err := unix.Read(fd, into[:])
			if n <= 0 {
				c.t.Fatal(n, err)
			}
			c.answers.Write(into[:n])
			c.got++
			c.waited += c.now - c.asked[fd] - c.delay
			if c.toAsk > 0 {
				c.toAsk--
				c.ask(fd, "GET / HTTP/1.1\r\n\r\n")
			}
		}
		if len(events) == 0 {
			return c.now
		}
	}
}

// until has the loop go round until so many answers came. It lets time pass where the loop would sleep.
func (c *clients) until(answers int) {
	c.t.Helper()
	for rounds := 0; c.got < answers; rounds++ {
		if rounds > 100*answers {
			c.t.Fatalf("%d answers of %d", c.got, answers)
		}
		if l := c.loop; l.waiting.Len() == len(c.asked) {
			c.now = max(c.now, l.waiting[0].due)
		}
		c.loop.traffic.wake()
		c.loop.round()
	}
}

// What clients wait beyond the delay is told, of however many of them, and nothing more.
func TestTheLagIsWhatClientsWaitBeyondTheDelay(t *testing.T) {
	for _, one := range []struct {
		name                 string
		connections, answers int
		look                 time.Duration
		least, most          time.Duration
	}{
		{"light load", 1, 200, 10 * time.Microsecond, 0, 150 * time.Microsecond},
		{"a burst", 2000, 2000, 10 * time.Microsecond, 10 * time.Millisecond, 100 * time.Millisecond},
		{"overload", 100, 2000, 200 * time.Microsecond, 20 * time.Millisecond, 100 * time.Millisecond},
		{"overload of more than a turn", 400, 8000, 100 * time.Microsecond, 80 * time.Millisecond, 300 * time.Millisecond},
		{"overload of many turns", 2000, 20_000, 20 * time.Microsecond, 80 * time.Millisecond, 300 * time.Millisecond},
	} {
		c := newClients(t, one.connections, 50*time.Millisecond, one.look)
		c.toAsk = one.answers - one.connections
		for fd := range c.asked {
			c.ask(fd, "GET / HTTP/1.1\r\n\r\n")
		}
		c.until(one.answers)
		waited := c.waited / time.Duration(c.got)
		lag := c.loop.counted.lag.sum / time.Duration(c.loop.counted.answered)
		t.Logf("%s: clients waited %v, lag %v", one.name, waited, lag)
		if waited < one.least || waited > one.most {
			t.Errorf("%s: clients waited %v: not the case that is meant", one.name, waited)
		}
		// What asks while a turn of answers is written, two looks each, is not known of until after it.
		unknown := time.Duration(min(one.connections, turn)) * one.look
		if lag > waited || lag < waited-unknown-10*one.look {
			t.Errorf("%s: clients waited %v, lag %v", one.name, waited, lag)
		}
	}
}

// What comes while the loop rests is read after the rest. Its lag tells half of the rest, and nobody knows
// more. A delay of 0 has no rest.
func TestHalfARestIsInTheLagOfWhatCameInIt(t *testing.T) {
	const look = time.Microsecond
	for _, one := range []struct{ delay, rest time.Duration }{
		{10 * time.Second, longestRest}, {200 * time.Millisecond, time.Millisecond}, {20 * time.Millisecond, 100 * time.Microsecond}, {0, 0},
	} {
		c := newClients(t, 2, one.delay, look)
		fds := slices.Collect(maps.Keys(c.asked))
		rests := []time.Duration{}
		c.loop.traffic.rest = func(left time.Duration) {
			c.now += left / 2
			if rests = append(rests, left); len(rests) == 1 {
				c.ask(fds[1], "GET / HTTP/1.1\r\n\r\n")
			}
			c.now += left / 2
		}
		c.ask(fds[0], "GET / HTTP/1.1\r\n\r\n")
		c.until(1)
		if one.rest == 0 {
			if len(rests) > 0 {
				t.Errorf("a delay of 0, and rests: %v", rests)
			}
			continue
		}
		c.until(2)
		if len(rests) == 0 || rests[0] > one.rest || rests[0] < one.rest-20*look {
			t.Fatalf("delay %v, rests %v, want %v", one.delay, rests, one.rest)
		}
		lag := c.loop.counted.lag.sum
		t.Logf("delay %v: rest %v, clients waited %v, lag %v", one.delay, rests[0], c.waited, lag)
		if c.waited < one.rest/2-20*look || lag < c.waited-20*look || lag > c.waited+20*look {
			t.Errorf("delay %v: clients waited %v, lag %v", one.delay, c.waited, lag)
		}
	}
}

// The loop reads 64 KiB at once. A body about as long, with its head, takes two reads.
func TestABodyAcrossTwoReadsStaysWhole(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nContent-Length: 00000\r\n\r\n"
	for _, length := range []int{
		readBytes - len(head) - 1, readBytes - len(head), readBytes - len(head) + 1, 65_500, bodyBytes - 1, bodyBytes,
	} {
		request := strings.Replace(head, "00000", strconv.Itoa(length), 1) + strings.Repeat("a", length)
		c := newClients(t, 1, 0, time.Microsecond)
		for fd := range c.asked {
			// The next request follows in the same bytes.
			c.ask(fd, request+"GET /health HTTP/1.1\r\n\r\n")
		}
		c.until(1)
		c.told()
		if got, want := c.answers.String(), with(onlyGet, "")+with(healthy, ""); got != want {
			t.Errorf("a body of %d bytes: %q", length, got)
		}
	}
}

// A client that reads slowly gets the rest of what is being written to it, as what waits for its time.
func TestALoopThatStopsWritesWhatItHasBegun(t *testing.T) {
	const requests = 3000
	c := newClients(t, 1, 0, time.Microsecond)
	// Nobody reads while the loop looks at the clock.
	c.loop.traffic.clock = func() time.Duration { return 0 }
	c.loop.traffic.stop.Store(stopWhenAnswered)
	for fd := range c.asked {
		c.ask(fd, strings.Repeat("GET / HTTP/1.1\r\n\r\n", requests))
		ended := make(chan struct{})
		go func() {
			c.loop.run()
			close(ended)
		}()
		if err := unix.SetNonblock(fd, false); err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for buffer := make([]byte, 4096); ; {
			n, err := unix.Read(fd, buffer)
			if n <= 0 {
				if err != nil || got.String() != strings.Repeat(with(answered, ""), requests) {
					t.Errorf("%d bytes, then %v", got.Len(), err)
				}
				break
			}
			got.Write(buffer[:n])
		}
		<-ended
		// The loop has closed its own, and the test's end closes another.
		var err error
		if c.loop.poll, err = epoll.New(); err != nil {
			t.Fatal(err)
		}
	}
}
