// An event loop: one thread that opens its share of the connections, sends what is due and reads answers.
package main

import (
	"crypto/tls"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// turn is how many requests are sent before events are looked for again, and how many events are taken
	// at once.
	turn = 128
	// longestNap is how long a loop sleeps at most, and yieldEvery after how long it lets Go's scheduler have
	// its turn. Were it not scheduled anew for 10 ms, Go's watcher (sysmon) would interrupt it.
	longestNap = 5 * time.Millisecond
	yieldEvery = 8 * time.Millisecond
	// longestDoze is how long answers may stand in their sockets, promptFor how long none may after one of manyBytes
	// came: what is not read in time would stop its sender.
	longestDoze = time.Millisecond
	promptFor   = time.Second
	manyBytes   = 16 << 10
	// tooLate is from which lateness on none may stand for promptAfterLate: where a loop has to wait for a processor,
	// every event is one more chance to get it, and costs less than where it wakes one up.
	tooLate         = 500 * time.Microsecond
	promptAfterLate = 10 * time.Millisecond
	// readBytes is the most that is read at once, readsAtOnce how often before others have their turn.
	readBytes   = 64 << 10
	readsAtOnce = 16
	// openTime is how long connections are opened before others have their turn. One can take the kernel
	// milliseconds where few ports are left.
	openTime = time.Millisecond
	// reopenPause is the least time between two attempts to open a connection that failed.
	reopenPause = 100 * time.Millisecond
)

// clock is the time that has passed since the run began.
type clock func() time.Duration

// loop does its share of a load in one thread. It reads all that there is to read before it sends: so an
// answer's end is when it came, and what the sending costs is in the lateness of the next requests.
type loop struct {
	load  *load
	clock clock
	// wait and doze are as the functions of these names.
	wait, doze func(poll int, events []unix.EpollEvent, left time.Duration) int
	// dated is whether the kernel is asked when answers came, noted whether it said so of the last one. Then they need
	// not be read at once.
	dated, noted bool
	letter       letter
	// prompt is until when they are read at once nevertheless.
	prompt time.Duration
	// end is when the run ends. It is made earlier to stop it.
	end        *atomic.Int64
	poll, wake int
	events     [turn]unix.EpollEvent
	buffer     [readBytes]byte

	connections []connection
	groups      []*group
	// Each connection is in one of these, the longest there first, or in its group's free ones. Those that are held were
	// answered, and are to send nothing more.
	toOpen, reopening, pausing, opening, inFlight, held list
	// more are connections that were left with bytes to read.
	more []*connection
	// openAt is when the next connection may be opened, openEvery how long after it the next.
	openAt, openEvery time.Duration
	established       int
	// untried are those that it has not tried to open yet.
	untried int

	schedule *schedule
	// dueAt and dueNext are the next request of the schedule.
	dueAt   time.Duration
	dueNext *request

	now   *tally
	begun time.Duration
	// secondEnd is when now is over; over is whether the run is.
	secondEnd time.Duration
	over      bool
	// finished takes what was counted in a second, blank gives a tally back.
	finished chan<- *tally
	blank    <-chan *tally

	yielded time.Duration

	// config is of TLS; dialled is what came of the dials, for which the loop is woken.
	config  *tls.Config
	mu      sync.Mutex
	dialled []dialled
}

// group is the connections of a loop to one host, and what is due there.
type group struct {
	host    *host
	free    list
	waiting fifo
	choice  *choice
}

// connection is to be opened, pauses, is opening, is free or held, or has a request in flight.
type connection struct {
	next, before *connection
	in           *list
	group        *group
	// number is its place among the loop's connections.
	number int32
	fd     int
	// born tells events of this socket from those of one before it.
	born int32
	// since is when it came into its list; of a request in flight, when it was sent.
	since time.Duration
	// tried is when it was last tried to open it.
	tried time.Duration
	// due is when the request in flight was due.
	due     time.Duration
	request *request
	// out is what is left to write, head a part of a head that was read.
	out, head []byte
	answer    answer
	// used is whether it was answered something since it was opened.
	used bool
	// secure is its TLS, nil without.
	secure *secure
	// hungUp is whether the connection's end is among what is to be read.
	hungUp bool
}

// newLoop is the loop with a number, of so many.
func newLoop(l *load, number, loops int, clock clock, end *atomic.Int64, finished chan<- *tally, blank <-chan *tally) (*loop, error) {
	own := share(*l.words.Connections, number, loops)
	o := &loop{untried: own, load: l, clock: clock, wait: wait, doze: doze, end: end, poll: -1, wake: -1, connections: make([]connection, own),
		now: newTally(l.open), secondEnd: time.Second, finished: finished, blank: blank, dueAt: never}
	if l.open {
		o.schedule = newSchedule(l, number, loops)
		o.dueAt, o.dueNext = o.schedule.next()
	}
	if pace := *l.words.ConnectPerS; pace > 0 {
		o.openEvery = seconds(float64(loops) / pace)
		o.openAt = seconds(float64(number) / pace)
	}
	if l.secure {
		o.config = &tls.Config{InsecureSkipVerify: *l.words.Insecure, NextProtos: []string{"http/1.1"}}
	}
	o.divide(uint64(number))
	var err error
	if o.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	if o.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, err
	}
	return o, unix.EpollCtl(o.poll, unix.EPOLL_CTL_ADD, o.wake, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: -1})
}

// share is how much of a whole the one with this number gets.
func share(whole, number, of int) int {
	return whole*(number+1)/of - whole*number/of
}

// divide gives each host connections by the weight of its requests, and at least one.
func (o *loop) divide(number uint64) {
	weights, sum := make([]float64, len(o.load.hosts)), 0.0
	for i, h := range o.load.hosts {
		var own []*request
		for _, r := range o.load.requests {
			if r.host == h {
				own = append(own, r)
				weights[i] += r.weight
				sum += r.weight
			}
		}
		o.groups = append(o.groups, &group{host: h, choice: newChoice(*o.load.words.Seed, 3+number<<16+uint64(i), own)})
	}
	// Each next connection goes where it is missing most.
	given := make([]float64, len(o.groups))
	for i := range o.connections {
		most := 0
		for k := range o.groups {
			if given[k] == 0 && given[most] > 0 || (given[k] == 0) == (given[most] == 0) && given[k]/weights[k] < given[most]/weights[most] {
				most = k
			}
		}
		given[most]++
		c := &o.connections[i]
		c.number, c.fd, c.group, c.tried = int32(i), -1, o.groups[most], -reopenPause
		o.toOpen.push(c, 0)
	}
}

// run does the load until its end.
func (o *loop) run() {
	o.yield()
	for o.round() {
		if o.clock()-o.yielded >= yieldEvery {
			o.yield()
		}
	}
}

// yield lets Go's scheduler have its turn. Afterwards the loop may be in another thread, which the kernel is
// to wake when asked, and not up to 50 µs later.
func (o *loop) yield() {
	runtime.Gosched()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	o.yielded = o.clock()
}

// round sleeps until there is something to do, and does it. It is false after the run's end.
func (o *loop) round() bool {
	left, dozes := o.nap()
	sleep := o.wait
	if dozes {
		sleep = o.doze
	}
	o.read(sleep(o.poll, o.events[:], left))
	now := o.clock()
	if !o.count(now) {
		return false
	}
	o.giveUp(now)
	o.send(now)
	o.open(now)
	return !o.over
}

// nap is how long nothing is to be done but what events tell, and whether these may wait so long, too: to be woken
// for each answer would cost as much as all else that is done for a request.
func (o *loop) nap() (time.Duration, bool) {
	now := o.clock()
	next := min(o.secondEnd, time.Duration(o.end.Load()), now+longestNap)
	if len(o.more) > 0 {
		return 0, false
	}
	free, short := false, false
	for _, g := range o.groups {
		if g.free.first == nil {
			short = true
		} else if !o.load.open || g.waiting.len() > 0 {
			return 0, false
		} else {
			free = true
		}
	}
	if free {
		next = min(next, o.dueAt)
	}
	if o.reopening.first != nil {
		return 0, false
	}
	if o.toOpen.first != nil {
		next = min(next, o.openAt)
	}
	if c := o.pausing.first; c != nil {
		next = min(next, c.since+reopenPause)
	}
	for _, l := range [...]*list{&o.opening, &o.inFlight} {
		if l.first != nil {
			next = min(next, l.first.since+o.load.timeout)
		}
	}
	left := max(0, next-now)
	return left, o.noted && !short && now >= o.prompt && left > 0 && left <= longestDoze
}

// count ends the seconds that are over. It is false when the run is.
func (o *loop) count(now time.Duration) bool {
	for !o.over {
		end := time.Duration(o.end.Load())
		if now < o.secondEnd && now < end {
			return true
		}
		over := min(o.secondEnd, end)
		o.comeDue(over)
		t := o.now
		t.Length = (over - o.begun).Seconds()
		t.Unfinished, t.Waiting, t.Connections, t.Untried = o.inFlight.count, 0, o.established, o.untried
		for _, g := range o.groups {
			t.Waiting += g.waiting.len()
		}
		t.Unfinished += t.Waiting
		if c := o.inFlight.first; c != nil {
			t.Oldest = (over - c.since).Microseconds()
		}
		// From here on the tally is not the loop's.
		number := t.Second
		o.finished <- t
		if o.over = over == end; o.over {
			close(o.finished)
		} else {
			select {
			case o.now = <-o.blank:
			default:
				o.now = newTally(o.load.open)
			}
			o.now.Second = number + 1
			o.begun = over
			o.secondEnd += time.Second
		}
	}
	return false
}

// comeDue has the requests wait that are due before a time.
func (o *loop) comeDue(before time.Duration) {
	for o.dueAt < before {
		o.now.Due++
		for _, g := range o.groups {
			if g.host == o.dueNext.host {
				g.waiting.push(o.dueAt, o.dueNext)
			}
		}
		o.dueAt, o.dueNext = o.schedule.next()
	}
}

// read handles everything that there is to read. The kernel tells of each socket before it tells of one
// again, so after as many events as there are connections the round goes on.
func (o *loop) read(told int) {
	for seen := told; ; seen += told {
		for _, event := range o.events[:told] {
			if event.Fd < 0 {
				o.takeDialled()
			} else if c := &o.connections[event.Fd]; c.born == event.Pad && c.fd >= 0 {
				o.happened(c, event.Events)
			}
		}
		if told < len(o.events) || seen >= len(o.connections) {
			break
		}
		told = o.wait(o.poll, o.events[:], 0)
	}
	if len(o.more) > 0 {
		more := o.more
		o.more = nil
		for _, c := range more {
			if c.in == &o.inFlight {
				o.receive(c)
			}
		}
	}
}

func (o *loop) happened(c *connection, events uint32) {
	if c.in == &o.opening {
		if events&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) == 0 {
			return
		}
		failed, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && failed != 0 {
			err = unix.Errno(failed)
		}
		if err != nil {
			o.failed(c, err)
			return
		}
		o.opened(c)
	}
	c.hungUp = c.hungUp || events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
	if c.unwritten() && events&unix.EPOLLOUT != 0 && !o.write(c) {
		return
	}
	if c.hungUp || events&unix.EPOLLIN != 0 {
		o.receive(c)
	}
}

// receive reads what is there for a connection.
func (o *loop) receive(c *connection) {
	for range readsAtOnce {
		n, err := o.readSome(c)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return
		case err != nil:
			o.broke(c, cause(err))
			return
		case n == 0:
			o.ended(c)
			return
		}
		if c.in != &o.inFlight {
			// Nothing was asked.
			o.gone(c, "protocol")
			return
		}
		if n >= manyBytes {
			o.prompt = o.clock() + promptFor
		}
		data := o.buffer[:n]
		if len(c.head) > 0 {
			c.head = append(c.head, data...)
			data = c.head
		}
		rest, whole, err := c.answer.read(data, c.request)
		switch {
		case err != nil:
			o.broke(c, "protocol")
			return
		case whole:
			o.answered(c, len(rest) > 0)
			return
		case len(c.head) == 0:
			c.head = append(c.head, rest...)
		case len(rest) == 0:
			c.head = nil
		default:
			c.head = append(c.head[:0], rest...)
		}
		// Less than was asked for is all there is; the next byte is told again.
		if n < len(o.buffer) && !c.hungUp && c.secure == nil {
			return
		}
	}
	o.more = append(o.more, c)
}

func (o *loop) readSome(c *connection) (int, error) {
	if o.dated {
		return o.letter.read(c.fd, o.buffer[:])
	}
	if c.secure == nil {
		return atOnce(unix.SYS_READ, c.fd, o.buffer[:])
	}
	n, ends, err := c.secure.read(o.buffer[:])
	c.hungUp = c.hungUp || ends
	return n, err
}

// came is when the last bytes came that were read for a connection: now, where the kernel does not say, or something that
// cannot be, as its clock was set.
func (o *loop) came(c *connection) time.Duration {
	now := o.clock()
	if o.noted = o.letter.when.Sec != 0; !o.noted {
		return now
	}
	at := now - time.Duration(time.Now().UnixNano()-o.letter.when.Nano())
	if at < c.since || at > now {
		return now
	}
	return at
}

// answered counts a whole answer. Its connection is free, unless it ends.
func (o *loop) answered(c *connection, more bool) {
	end := o.came(c)
	if !o.count(end) {
		return
	}
	o.now.answered(c.request, &c.answer, end-c.since, end-c.due)
	c.used = true
	if c.answer.closes || c.request.closes || more || c.unwritten() || c.hungUp {
		o.closeAgain(c)
		return
	}
	c.head = nil
	if o.load.words.Once {
		o.held.push(c, end)
		return
	}
	c.group.free.push(c, end)
}

// ended is that the other side sends nothing more.
func (o *loop) ended(c *connection) {
	switch {
	case c.in != &o.inFlight:
		o.gone(c, "closed")
	case c.answer.place == inStream:
		o.answered(c, false)
	default:
		o.broke(c, "closed")
	}
}

// broke is that a connection was lost.
func (o *loop) broke(c *connection, cause string) {
	if c.in != &o.inFlight {
		o.gone(c, cause)
		return
	}
	now := o.clock()
	if !o.count(now) {
		return
	}
	o.now.SocketErrors[cause]++
	o.closeAgain(c)
}

// gone is that a connection without a request was lost. One that never had an answer is as one that could not be opened: a
// proxy with a limit accepts first and closes then.
func (o *loop) gone(c *connection, cause string) {
	if !c.used && o.count(o.clock()) {
		o.now.ConnectFailed[cause]++
	}
	o.closeAgain(c)
}

// giveUp ends what took too long.
func (o *loop) giveUp(now time.Duration) {
	for c := o.inFlight.first; c != nil && c.since+o.load.timeout <= now; c = o.inFlight.first {
		o.now.Timeouts++
		o.closeAgain(c)
	}
	for c := o.opening.first; c != nil && c.since+o.load.timeout <= now; c = o.opening.first {
		o.failed(c, unix.ETIMEDOUT)
	}
	for c := o.pausing.first; c != nil && c.since+reopenPause <= now; c = o.pausing.first {
		o.queue(c, now)
	}
}

// send sends what is due on connections that are free.
func (o *loop) send(now time.Duration) {
	// What is due now is due before the next nanosecond.
	o.comeDue(min(now+1, o.secondEnd, time.Duration(o.end.Load())))
	for range turn {
		sent := false
		for _, g := range o.groups {
			c := g.free.first
			if c == nil || o.load.open && g.waiting.len() == 0 {
				continue
			}
			now = o.clock()
			if !o.count(now) {
				return
			}
			sent = true
			since, due := c.since, c.since
			if o.load.open {
				due, c.request = g.waiting.pop()
			} else {
				c.request = g.choice.next()
			}
			o.inFlight.push(c, now)
			c.due, c.answer, c.out = due, answer{}, c.request.bytes
			late := now - max(since, due)
			if late > tooLate {
				o.prompt = max(o.prompt, now+promptAfterLate)
			}
			o.now.Sent++
			o.now.Late.add(late)
			o.write(c)
		}
		if !sent {
			return
		}
	}
}

// write writes what is to be written, as far as there is room. It is false if the connection was lost.
func (o *loop) write(c *connection) bool {
	for c.unwritten() {
		n, err := o.writeSome(c)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			o.prompt = o.clock() + promptFor
			return true
		case err != nil:
			o.broke(c, cause(err))
			return false
		default:
			c.out = c.out[n:]
		}
	}
	return true
}

// writeSome fails with EAGAIN where there is no more room.
func (o *loop) writeSome(c *connection) (int, error) {
	if c.secure == nil {
		return atOnce(unix.SYS_WRITE, c.fd, c.out)
	}
	if err := c.secure.wire.flush(); err != nil {
		return 0, err
	}
	n := 0
	if len(c.out) > 0 {
		var err error
		if n, err = c.secure.tls.Write(c.out); err != nil {
			return 0, err
		}
	}
	if len(c.secure.wire.pending) > 0 {
		c.out = nil
		return 0, unix.EAGAIN
	}
	return n, nil
}

// unwritten is whether a part of the request is still to be written.
func (c *connection) unwritten() bool {
	return len(c.out) > 0 || c.secure != nil && len(c.secure.wire.pending) > 0
}

// open opens connections at their pace; those that were of use before, at once.
func (o *loop) open(now time.Duration) {
	for begun := now; now-begun < openTime; now = o.clock() {
		if c := o.reopening.first; c != nil {
			o.connect(c, now)
		} else if c = o.toOpen.first; c != nil && o.openAt <= now {
			o.openAt += o.openEvery
			o.connect(c, now)
		} else {
			return
		}
	}
}

func (o *loop) connect(c *connection, now time.Duration) {
	if c.born == 0 {
		o.untried--
	}
	c.tried, c.used = now, false
	c.born++
	o.opening.push(c, now)
	if o.config != nil {
		go o.dial(c, c.born)
		return
	}
	to := c.group.host.address.Load()
	fd, err := unix.Socket(to.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		o.failed(c, err)
		return
	}
	c.fd = fd
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if o.dated {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	}
	if err = o.watch(c); err == nil {
		err = unix.Connect(fd, to.socket)
	}
	if err != nil && err != unix.EINPROGRESS {
		o.failed(c, err)
	}
}

// watch has the loop told of every change of a connection, once.
func (o *loop) watch(c *connection) error {
	return unix.EpollCtl(o.poll, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{
		Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET, Fd: c.number, Pad: c.born})
}

// dial opens a connection with TLS, in a goroutine of its own.
func (o *loop) dial(c *connection, born int32) {
	s, err := dial(c.group.host, o.config, o.load.timeout)
	o.mu.Lock()
	o.dialled = append(o.dialled, dialled{c, born, s, err})
	o.mu.Unlock()
	o.rouse()
}

// rouse has the loop look at the clock and at what was dialled. Any goroutine may call it.
func (o *loop) rouse() {
	_, _ = unix.Write(o.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

// takeDialled takes the connections over that were dialled.
func (o *loop) takeDialled() {
	o.mu.Lock()
	all := o.dialled
	o.dialled = nil
	o.mu.Unlock()
	for _, one := range all {
		c := one.connection
		switch {
		case c.born != one.born || c.in != &o.opening:
			// It took too long and was given up.
			if one.err == nil {
				_ = unix.Close(one.secure.wire.fd)
			}
		case one.err != nil:
			o.failed(c, one.err)
		default:
			c.fd, c.secure = one.secure.wire.fd, one.secure
			if err := o.watch(c); err != nil {
				o.failed(c, err)
			} else {
				o.opened(c)
			}
		}
	}
}

// opened is that a connection is there.
func (o *loop) opened(c *connection) {
	now := o.clock()
	if !o.count(now) {
		return
	}
	o.established++
	c.group.free.push(c, now)
}

// failed is that a connection could not be opened.
func (o *loop) failed(c *connection, err error) {
	now := o.clock()
	if !o.count(now) {
		return
	}
	o.now.ConnectFailed[cause(err)]++
	c.group.host.again()
	o.closeLater(c, now)
}

// closeAgain closes a connection that was open, and opens it again: at once if it was of use. At the pace of opening
// requests would wait for pacer where many are lost, and that would look like the server's overload.
func (o *loop) closeAgain(c *connection) {
	now := o.clock()
	if !c.used {
		o.closeLater(c, now)
		return
	}
	// After the end the tally is not the loop's.
	if !o.over {
		o.now.Reopened++
	}
	o.close(c)
	o.reopening.push(c, now)
}

// closeLater closes a connection and opens it again at the pace of opening, and at most once a pause.
func (o *loop) closeLater(c *connection, now time.Duration) {
	o.close(c)
	if now-c.tried < reopenPause {
		o.pausing.push(c, now)
	} else {
		o.queue(c, now)
	}
}

// queue has a connection opened when it is its turn.
func (o *loop) queue(c *connection, now time.Duration) {
	if o.toOpen.first == nil {
		o.openAt = max(o.openAt, now)
	}
	o.toOpen.push(c, now)
}

func (o *loop) close(c *connection) {
	if c.in == &o.inFlight || c.in == &o.held || c.in == &c.group.free {
		o.established--
	}
	if c.fd >= 0 {
		_ = unix.Close(c.fd)
	}
	c.fd, c.out, c.head, c.secure, c.hungUp = -1, nil, nil, nil, false
}
