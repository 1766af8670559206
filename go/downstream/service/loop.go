package service

import (
	"container/heap"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lab/epoll"
)

const (
	// idleTimeout is how long a connection may go without a request. Longer than the lab's own clients
	// keep one (60 s), and shorter than some frameworks' do: what they leave would use up Toxiproxy's
	// descriptors, two for each.
	idleTimeout = 75 * time.Second
	// sweepInterval is the least time between two looks for idle connections.
	sweepInterval = time.Second
	// acceptPause is how long nothing is accepted after the limit on open files was met.
	acceptPause = 100 * time.Millisecond
	// turn is how many due answers, or new connections, are handled before the next kind gets its turn.
	turn = 128
	// longestNap is how long a loop with waiting requests sleeps at most, and yieldEvery after how long it
	// lets Go's scheduler have its turn. Were it not scheduled anew for 10 ms, Go's watcher (sysmon) would take
	// its processor away, and then look 50,000 times a second for more.
	longestNap = 5 * time.Millisecond
	yieldEvery = 4 * time.Millisecond
	// longestRest and restShare: a loop with waiting requests begins a round at least longestRest after the last
	// one, or that share of the mean delay if this is less. What comes or is due meanwhile is handled in one go.
	// So nobody wakes and goes to sleep for each request: not the loop, and not who sends to it and reads from it.
	longestRest = time.Millisecond
	restShare   = 1.0 / 200
	// readBytes is the most that is read at once.
	readBytes = 64 << 10
	// never is a time that does not come.
	never = time.Duration(math.MaxInt64)
)

// loop serves connections in one thread. What its connections wait for is in one heap, so a request costs
// one read and one write, and a waiting one costs nothing.
type loop struct {
	traffic  *Traffic
	poll     *epoll.Poll
	buffer   [readBytes]byte
	requests *requests

	// mu is held while the loop works, and while a scrape reads what is below.
	mu      sync.Mutex
	counted counted
	// connections are found by their descriptors.
	connections []*connection
	waiting     waiting
	// began is when the round did, came since when what it reads counts as there.
	began, came time.Duration
	// yielded is when Go's scheduler last had its turn.
	yielded time.Duration
	// sweepAt is when idle connections are looked for, acceptAt when to accept although nothing was told.
	sweepAt, acceptAt time.Duration
}

// counted is what a loop has done so far.
type counted struct {
	accepted, answered, inFlight int
	// drawn is the sum of the delays of what was answered.
	drawn time.Duration
	lag   lags
}

// connection is either read from, waits in the heap for the time of its answer, or waits for room to
// write the rest of it.
type connection struct {
	fd int
	// in was read and is not answered yet: part of a request, or requests after the one that waits.
	in []byte
	// out is the answer that waits, or the rest of it.
	out []byte
	// due is when out may be written, place where in the heap it stands: -1 is nowhere.
	due   time.Duration
	place int
	// delay was drawn for the request. unread is how long the round had lasted when it was read: part of its
	// lag, not of its delay.
	delay, unread time.Duration
	// used is when something was last read or written.
	used time.Duration
	// readable is whether a read may find something, hungUp whether the end follows, ended whether it came.
	readable, hungUp, ended bool
	continued, closes       bool
}

// seed tells its draws of delays from those of the other loops.
func newLoop(traffic *Traffic, delay *Delay, seed uint64) (*loop, error) {
	poll, err := epoll.New()
	if err != nil {
		return nil, err
	}
	return &loop{traffic: traffic, poll: poll, requests: newRequests(delay, seed), sweepAt: never, acceptAt: never}, nil
}

// add has the loop told of changes, once per change.
func (l *loop) add(fd int, events uint32) error { return l.poll.Add(fd, events, int32(fd), 0) }

// run serves until the traffic stops.
func (l *loop) run() {
	defer l.close()
	for {
		l.round()
		if stop := l.traffic.stop.Load(); stop == stopAtOnce || stop == stopWhenAnswered && !l.owes() {
			return
		}
	}
}

// owes is true if an answer waits for its time, or for room to write the rest of it.
func (l *loop) owes() bool {
	return slices.ContainsFunc(l.connections, func(c *connection) bool { return c != nil && c.out != nil })
}

// round sleeps until there is something to do, and does it.
func (l *loop) round() {
	if l.began-l.yielded >= yieldEvery {
		runtime.Gosched()
		l.yielded = l.began
	}
	rests := l.traffic.clock()
	events := l.rest(rests)
	rested := len(events) > 0
	if !rested {
		events = l.sleep()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began = l.traffic.clock()
	if l.came = l.began; rested {
		// They came at any time of the rest: half of it is what they waited on average.
		l.came -= (l.began - rests) / 2
	}
	l.read(events)
	l.answerDue()
	now := l.traffic.clock()
	if l.acceptAt <= now {
		l.accept(now)
	}
	if l.sweepAt <= now {
		l.sweep(now)
	}
}

// read handles everything that there is to read, the events that came first. Only then are answers
// written: were requests left in their sockets, the time that they stand there would be in no lag.
// The kernel tells of each socket before it tells of one again. So after as many events as there are
// connections the round goes on, even where clients are quicker than the loop.
func (l *loop) read(events []unix.EpollEvent) {
	for seen := len(events); ; seen += len(events) {
		for _, event := range events {
			switch fd := int(event.Fd); fd {
			case epoll.Woken:
			case l.traffic.listener:
				l.acceptAt = 0
			default:
				l.happened(fd, event.Events)
			}
		}
		if len(events) < epoll.MaxEvents || seen >= len(l.connections) {
			return
		}
		events = l.poll.Look()
	}
}

// rest lets the rest of the last round pass, and returns the events that came in it.
func (l *loop) rest(now time.Duration) []unix.EpollEvent {
	if l.waiting.Len() == 0 {
		return nil
	}
	share := time.Duration(restShare * float64(l.requests.delay.Mean()))
	left := l.began + min(longestRest, share) - now
	// What the last round left is due.
	if left <= 0 || l.waiting[0].due <= now {
		return nil
	}
	l.traffic.rest(left)
	return l.poll.Look()
}

// sleep waits for events, until the next time at which something is due, and returns those that came.
func (l *loop) sleep() []unix.EpollEvent {
	next := min(l.sweepAt, l.acceptAt)
	if next == never && l.waiting.Len() == 0 {
		return l.poll.WaitLong(nil)
	}
	now := l.traffic.clock()
	if l.waiting.Len() > 0 {
		next = min(next, l.waiting[0].due, now+longestNap)
	}
	left := max(0, next-now)
	return l.poll.WaitLong(&left)
}

func (l *loop) happened(fd int, events uint32) {
	c := l.connection(fd)
	if events&(unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		// Nobody is there to read an answer.
		l.end(c)
		return
	}
	c.hungUp = c.hungUp || events&unix.EPOLLRDHUP != 0
	c.readable = c.readable || events&(unix.EPOLLIN|unix.EPOLLRDHUP) != 0
	if c.out != nil && c.place < 0 && !l.write(c) {
		return
	}
	l.serve(c)
}

// connection is the state of a descriptor, made when it is first told of.
func (l *loop) connection(fd int) *connection {
	for fd >= len(l.connections) {
		l.connections = append(l.connections, nil)
	}
	if l.connections[fd] == nil {
		l.connections[fd] = &connection{fd: fd, place: -1, used: l.traffic.clock()}
		if l.sweepAt == never {
			l.sweepAt = l.connections[fd].used + idleTimeout
		}
	}
	return l.connections[fd]
}

// serve answers what was read and reads on, until an answer has to wait or nothing more is there.
func (l *loop) serve(c *connection) {
	// What was just read stays in the loop's buffer unless it has to wait.
	data := c.in
	for c.out == nil {
		given, used, complete := answer{}, 0, false
		if len(data) > 0 {
			given, used, complete = l.requests.next(data, c.ended, c.continued)
		}
		if !complete {
			if c.ended {
				l.end(c)
				return
			}
			if !c.readable {
				break
			}
			// What is kept may not stay in the buffer that is read into.
			c.in = append(c.in[:0], data...)
			data = c.in
			read, err := epoll.Read(c.fd, l.buffer[:])
			switch {
			case err == unix.EAGAIN:
				c.readable = false
			case err != nil:
				l.end(c)
				return
			case read == 0:
				c.ended = true
			default:
				// Less than was asked for is all there is; the next byte is told again.
				c.readable = read == len(l.buffer) || c.hungUp
				c.used = l.traffic.clock()
				if len(data) == 0 {
					data = l.buffer[:read]
				} else {
					data = append(data, l.buffer[:read]...)
					c.in = data
				}
			}
			continue
		}
		data = data[used:]
		c.out, c.closes, c.continued = given.bytes, given.closes, given.interim
		if given.delayed {
			l.counted.inFlight++
			now := l.traffic.clock()
			c.due, c.delay, c.unread = now+given.delay, given.delay, now-l.came
			heap.Push(&l.waiting, c)
		} else if !l.write(c) {
			return
		}
	}
	if len(data) == 0 {
		c.in = nil
	} else {
		c.in = append(c.in[:0], data...)
	}
}

// answerDue writes the answers whose time has come.
func (l *loop) answerDue() {
	for range turn {
		if l.waiting.Len() == 0 {
			return
		}
		c := l.waiting[0]
		late := l.traffic.clock() - c.due
		if late < 0 {
			return
		}
		heap.Pop(&l.waiting)
		l.counted.inFlight--
		l.counted.answered++
		l.counted.drawn += c.delay
		l.counted.lag.add(c.unread + late)
		if l.write(c) {
			l.serve(c)
		}
	}
}

// write writes what is to be written, as far as there is room. It is false if the connection ended.
func (l *loop) write(c *connection) bool {
	left, err := epoll.Write(c.fd, c.out)
	if len(left) > 0 {
		c.out = left
		return true
	}
	c.out, c.used = nil, l.traffic.clock()
	if err != nil || c.closes {
		l.end(c)
		return false
	}
	return true
}

// end closes a connection. What it waited for is forgotten, so nothing is written to the next connection
// that has its descriptor.
func (l *loop) end(c *connection) {
	if c.place >= 0 {
		heap.Remove(&l.waiting, c.place)
		l.counted.inFlight--
	}
	l.connections[c.fd] = nil
	_ = unix.Close(c.fd)
}

// accept takes new connections, and gives the loops one each in turn.
func (l *loop) accept(now time.Duration) {
	for range turn {
		fd, _, err := unix.Accept4(l.traffic.listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch err {
		case nil:
			l.counted.accepted++
			// That it can be written to is told at once, so the loop learns of it without a request.
			if l.traffic.next().add(fd, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP) != nil {
				_ = unix.Close(fd)
			}
		case unix.EAGAIN:
			l.acceptAt = never
			return
		case unix.ECONNABORTED, unix.EINTR:
		default:
			// No descriptor or no memory is left.
			l.acceptAt = now + acceptPause
			return
		}
	}
}

// sweep ends connections that were idle for too long.
func (l *loop) sweep(now time.Duration) {
	l.sweepAt = never
	for _, c := range l.connections {
		switch {
		case c == nil:
		case c.place < 0 && now-c.used >= idleTimeout:
			l.end(c)
		default:
			l.sweepAt = min(l.sweepAt, max(c.used+idleTimeout, now+sweepInterval))
		}
	}
}

// close releases every descriptor of the loop.
func (l *loop) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.connections {
		if c != nil {
			l.end(c)
		}
	}
	l.poll.Close()
}

// waiting are the connections whose answer waits, the next first: a container/heap.
type waiting []*connection

func (w waiting) Len() int           { return len(w) }
func (w waiting) Less(i, j int) bool { return w[i].due < w[j].due }
func (w waiting) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].place, w[j].place = i, j
}

func (w *waiting) Push(c any) {
	c.(*connection).place = len(*w)
	*w = append(*w, c.(*connection))
}

func (w *waiting) Pop() any {
	last := len(*w) - 1
	c := (*w)[last]
	(*w)[last], *w, c.place = nil, (*w)[:last], -1
	return c
}
