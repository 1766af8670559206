// Accounting: a loop reads the answers, dates them, and counts every request in one class of one second.
package main

import (
	"time"

	"golang.org/x/sys/unix"

	"lab/epoll"
)

const (
	// readBytes is the most that is read at once, readsAtOnce how often before others have their turn.
	readBytes   = 64 << 10
	readsAtOnce = 16
)

// read handles all events that are there. The kernel reports every changed socket before it reports one again, so after as
// many events as there are connections the round goes on.
func (o *loop) read(events []unix.EpollEvent) {
	for seen := len(events); ; seen += len(events) {
		for _, event := range events {
			if event.Fd == epoll.Woken {
				o.takeDialled()
			} else if c := &o.connections[event.Fd]; c.born == event.Pad && c.fd >= 0 {
				o.happened(c, event.Events)
			}
		}
		if len(events) < epoll.MaxEvents || seen >= len(o.connections) {
			break
		}
		events = o.wait(0)
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

// happened handles the event of a connection.
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

// receive reads the bytes that have come for a connection.
func (o *loop) receive(c *connection) {
	for range readsAtOnce {
		n, err := o.readSome(c)
		switch {
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
		return o.reader.Read(c.fd, o.buffer[:])
	}
	if c.secure == nil {
		return epoll.Read(c.fd, o.buffer[:])
	}
	n, ends, err := c.secure.read(o.buffer[:])
	c.hungUp = c.hungUp || ends
	return n, err
}

// came returns when the last bytes came that were read for a connection: now, if the kernel did not date them, or if its clock
// was set in between.
func (o *loop) came(c *connection) time.Duration {
	now := o.clock()
	if o.noted = o.reader.Came.Sec != 0; !o.noted {
		return now
	}
	at := now - time.Duration(time.Now().UnixNano()-o.reader.Came.Nano())
	if at < c.since || at > now {
		return now
	}
	return at
}

// answered counts a whole answer. Its connection is free then, unless it ends.
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

// ended handles that the other side sends nothing more.
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

// broke counts a request that was lost with its connection.
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

// gone handles the loss of a connection without a request. One that never had an answer counts as one that could not be
// opened: a proxy with a limit accepts first and closes then.
func (o *loop) gone(c *connection, cause string) {
	if !c.used && o.count(o.clock()) {
		o.now.ConnectFailed[cause]++
	}
	o.closeAgain(c)
}

// giveUp ends requests and attempts to connect that took too long, and pauses.
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

// count hands over the seconds that have ended. It is false after the end of the run.
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
