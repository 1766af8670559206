package service

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"lab/epoll"
)

// How a loop stops.
const (
	stopWhenAnswered = 1 + iota
	stopAtOnce
)

// Clock is the time that has passed since a fixed moment. It is safe for use by many goroutines.
type Clock func() time.Duration

// NewClock is the real one, by the machine's monotonic clock.
func NewClock() Clock {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// Traffic is the server of the traffic port: event loops that share its connections.
type Traffic struct {
	clock    Clock
	rest     func(time.Duration)
	listener int
	loops    []*loop
	turn     int
	stop     atomic.Int32
	running  sync.WaitGroup
}

// NewTraffic serves what comes to the listener from Start on. It takes the listener over.
func NewTraffic(listener *net.TCPListener, delay *Delay, clock Clock) (*Traffic, error) {
	t := &Traffic{clock: clock, rest: epoll.Sleep, listener: -1}
	err := t.takeOver(listener)
	// Half of what Go may run at once: while one is idle, Go's watcher leaves a loop that sleeps alone.
	for i := 0; err == nil && i < max(1, runtime.GOMAXPROCS(0)/2); i++ {
		var l *loop
		if l, err = newLoop(t, delay, uint64(i)); err == nil {
			t.loops = append(t.loops, l)
		}
	}
	if err == nil {
		err = t.loops[0].add(t.listener, unix.EPOLLIN)
	}
	if err != nil {
		t.release()
	}
	return t, err
}

// takeOver takes the listener's socket away from Go's own poller.
func (t *Traffic) takeOver(listener *net.TCPListener) error {
	raw, err := listener.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		if t.listener, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0); failed == nil {
			// What is accepted inherits it.
			failed = unix.SetsockoptInt(t.listener, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		}
	})
	return errors.Join(err, failed, listener.Close())
}

// Start serves in the background.
func (t *Traffic) Start() {
	for _, l := range t.loops {
		t.running.Go(l.run)
	}
}

// Stop closes the port, and the connections when all answers were given or the deadline has passed.
func (t *Traffic) Stop(deadline context.Context) error {
	// What comes from now on is refused; the loop that accepts still holds the closed socket's number.
	_ = unix.Shutdown(t.listener, unix.SHUT_RDWR)
	stopped := make(chan struct{})
	go func() {
		t.running.Wait()
		close(stopped)
	}()
	t.end(stopWhenAnswered)
	var err error
	select {
	case <-stopped:
	case <-deadline.Done():
		err = deadline.Err()
		t.end(stopAtOnce)
		<-stopped
	}
	_ = unix.Close(t.listener)
	return err
}

func (t *Traffic) end(how int32) {
	t.stop.Store(how)
	t.wake()
}

// wake has every loop look at the clock and at what it is told.
func (t *Traffic) wake() {
	for _, l := range t.loops {
		l.poll.Wake()
	}
}

func (t *Traffic) release() {
	for _, l := range t.loops {
		l.close()
	}
	if t.listener >= 0 {
		_ = unix.Close(t.listener)
	}
}

// next is the loop that gets the next connection. Only the loop that accepts calls it.
func (t *Traffic) next() *loop {
	t.turn = (t.turn + 1) % len(t.loops)
	return t.loops[t.turn]
}

// counted is what all loops have done so far.
func (t *Traffic) counted() counted {
	var sum counted
	for _, l := range t.loops {
		l.mu.Lock()
		sum.add(&l.counted)
		l.mu.Unlock()
	}
	return sum
}
