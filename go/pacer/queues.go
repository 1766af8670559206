// The queues of a loop: connections, each in one list, and requests that are due.
package main

import "time"

// list is connections in the order in which they came.
type list struct {
	first, last *connection
	count       int
}

// push puts a connection at the end of this list, and takes it out of the one where it is.
func (l *list) push(c *connection, now time.Duration) {
	if c.in != nil {
		c.in.remove(c)
	}
	c.in, c.since = l, now
	c.before = l.last
	if l.last == nil {
		l.first = c
	} else {
		l.last.next = c
	}
	l.last = c
	l.count++
}

func (l *list) remove(c *connection) {
	if c.before == nil {
		l.first = c.next
	} else {
		c.before.next = c.next
	}
	if c.next == nil {
		l.last = c.before
	} else {
		c.next.before = c.before
	}
	c.next, c.before, c.in = nil, nil, nil
	l.count--
}

// fifo is requests that wait for a connection, the first due first.
type fifo struct {
	// ring holds count of them from first on. Its length is 0 or a power of two.
	ring         []dueRequest
	first, count int
}

type dueRequest struct {
	due     time.Duration
	request *request
}

func (f *fifo) len() int { return f.count }

func (f *fifo) push(due time.Duration, r *request) {
	if f.count == len(f.ring) {
		longer := make([]dueRequest, max(64, 2*f.count))
		n := copy(longer, f.ring[f.first:])
		copy(longer[n:], f.ring[:f.first])
		f.ring, f.first = longer, 0
	}
	f.ring[(f.first+f.count)&(len(f.ring)-1)] = dueRequest{due, r}
	f.count++
}

func (f *fifo) pop() (time.Duration, *request) {
	one := f.ring[f.first]
	f.first = (f.first + 1) & (len(f.ring) - 1)
	f.count--
	return one.due, one.request
}
