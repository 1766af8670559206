// An event loop: what it knows, and when it sleeps. Its three tasks are in connect.go, send.go and account.go.
package main

import (
	"crypto/tls"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"lab/epoll"
)

const (
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
)

// clock is the time that has passed since the run began.
type clock func() time.Duration

// loop does its share of a load in one thread. It reads all that there is to read before it sends: so an
// answer's end is when it came, and what the sending costs is in the lateness of the next requests.
type loop struct {
	load  *load
	clock clock
	poll  *epoll.Poll
	// wait and doze are those of poll.
	wait, doze func(left time.Duration) []unix.EpollEvent
	// dated is whether the kernel is asked when answers came, noted whether it said so of the last one. Then they need
	// not be read at once.
	dated, noted bool
	reader       epoll.DatedReader
	// prompt is until when they are read at once nevertheless.
	prompt time.Duration
	// end is when the run ends. It is made earlier to stop it.
	end    *atomic.Int64
	buffer [readBytes]byte

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
	poll, err := epoll.New()
	if err != nil {
		return nil, err
	}
	connections := make([]connection, share(*l.words.Connections, number, loops))
	o := &loop{load: l, clock: clock, poll: poll, wait: poll.Wait, doze: poll.Doze, end: end, connections: connections, untried: len(connections),
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
	return o, nil
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
	o.read(sleep(left))
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
