// Connecting: a loop opens its connections at their pace, and opens again what was lost.
package main

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// openTime is how long the loop opens connections in one round. One can take the kernel milliseconds where few
	// ports are left.
	openTime = time.Millisecond
	// reopenPause is the least time between two attempts to open a connection that failed.
	reopenPause = 100 * time.Millisecond
)

// share is how much of a whole the part with this number gets.
func share(whole, number, parts int) int {
	return whole*(number+1)/parts - whole*number/parts
}

// divide gives each host connections by the weight of its requests, and at least one.
func (o *loop) divide(number uint64) {
	weights := make([]float64, len(o.load.hosts))
	for i, h := range o.load.hosts {
		var requests []*request
		for _, r := range o.load.requests {
			if r.host == h {
				requests = append(requests, r)
				weights[i] += r.weight
			}
		}
		o.groups = append(o.groups, &group{host: h, choice: newChoice(*o.load.words.Seed, 3+number<<16+uint64(i), requests)})
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

// open opens connections at their pace, and those that had an answer before at once.
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
	family, to := c.group.host.address.Load().socket()
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
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
		err = unix.Connect(fd, to)
	}
	if err != nil && err != unix.EINPROGRESS {
		o.failed(c, err)
	}
}

// watch has the kernel report each change of a connection once.
func (o *loop) watch(c *connection) error {
	return o.poll.Add(c.fd, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP, c.number, c.born)
}

// dial opens a connection with TLS, in a goroutine of its own.
func (o *loop) dial(c *connection, born int32) {
	s, err := dial(c.group.host, o.config, o.load.timeout)
	o.mu.Lock()
	o.dialled = append(o.dialled, dialled{c, born, s, err})
	o.mu.Unlock()
	o.poll.Wake()
}

// takeDialled takes over the connections that were dialled.
func (o *loop) takeDialled() {
	o.mu.Lock()
	all := o.dialled
	o.dialled = nil
	o.mu.Unlock()
	for _, d := range all {
		c := d.connection
		switch {
		case c.born != d.born || c.in != &o.opening:
			// It took too long and was given up.
			if d.err == nil {
				_ = unix.Close(d.secure.wire.fd)
			}
		case d.err != nil:
			o.failed(c, d.err)
		default:
			c.fd, c.secure = d.secure.wire.fd, d.secure
			if err := o.watch(c); err != nil {
				o.failed(c, err)
			} else {
				o.opened(c)
			}
		}
	}
}

// opened makes a new connection free.
func (o *loop) opened(c *connection) {
	now := o.clock()
	if !o.count(now) {
		return
	}
	o.established++
	c.group.free.push(c, now)
}

// failed counts an attempt to connect that failed.
func (o *loop) failed(c *connection, err error) {
	now := o.clock()
	if !o.count(now) {
		return
	}
	o.now.ConnectFailed[cause(err)]++
	c.group.host.again()
	o.closeLater(c, now)
}

// closeAgain closes a connection and has it opened again: at once if it had an answer. At the pace of opening requests
// would wait for pacer where many connections are lost, and that would look like the server's overload.
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

// closeLater closes a connection and has it opened again at the pace of opening, and at most once a pause.
func (o *loop) closeLater(c *connection, now time.Duration) {
	o.close(c)
	if now-c.tried < reopenPause {
		o.pausing.push(c, now)
	} else {
		o.queue(c, now)
	}
}

// queue has a connection opened in its turn.
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
