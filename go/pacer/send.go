// Sending: a loop sends the requests that are due on connections that are free.
package main

import (
	"time"

	"lab/epoll"
)

// burst is how many requests are sent before events are looked for again.
const burst = 128

// comeDue moves the requests that are due before a time into the queues of their hosts.
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

// send sends what is due on connections that are free.
func (o *loop) send(now time.Duration) {
	// What is due now is due before the next nanosecond.
	o.comeDue(min(now+1, o.secondEnd, time.Duration(o.end.Load())))
	for range burst {
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
			o.now.SentIn[(now-o.secondEnd+time.Second)/slice]++
			o.now.Late.add(late)
			o.write(c)
		}
		if !sent {
			return
		}
	}
}

// write writes the rest of a request, as far as the socket has room. It is false if the connection was lost.
func (o *loop) write(c *connection) bool {
	var err error
	if c.secure == nil {
		c.out, err = epoll.Write(c.fd, c.out)
	} else {
		err = c.secure.write(c.out)
		c.out = nil
	}
	if err != nil {
		o.broke(c, cause(err))
		return false
	}
	if c.unwritten() {
		o.prompt = o.clock() + promptFor
	}
	return true
}

// unwritten is true while a part of the request is not written.
func (c *connection) unwritten() bool {
	return len(c.out) > 0 || c.secure != nil && len(c.secure.wire.pending) > 0
}
