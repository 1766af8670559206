// TLS for an event loop: crypto/tls shakes hands in a goroutine, and then works on a socket that does not block.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"lab/epoll"
)

// secure is a connection with TLS, after its handshake. Only one thread uses it.
type secure struct {
	tls  *tls.Conn
	wire *wire
}

// wire is what crypto/tls reads from and writes to: a connection of Go's while it shakes hands, then a
// descriptor. crypto/tls lets a read go on after an error that is temporary, but not a write. So a write
// takes everything, and keeps what the socket has no room for.
type wire struct {
	net.Conn
	// fd is -1 during the handshake.
	fd      int
	pending []byte
}

// notYet is that nothing is there to read.
type notYet struct{}

func (notYet) Error() string   { return "nothing to read yet" }
func (notYet) Timeout() bool   { return true }
func (notYet) Temporary() bool { return true }

func (w *wire) Read(into []byte) (int, error) {
	if w.fd < 0 {
		return w.Conn.Read(into)
	}
	n, err := epoll.Read(w.fd, into)
	switch {
	case err == unix.EAGAIN:
		return 0, notYet{}
	case err == nil && n == 0:
		return 0, io.EOF
	}
	return n, err
}

func (w *wire) Write(data []byte) (int, error) {
	if w.fd < 0 {
		return w.Conn.Write(data)
	}
	w.pending = append(w.pending, data...)
	return len(data), w.flush()
}

// flush writes what the socket has room for.
func (w *wire) flush() error {
	left, err := epoll.Write(w.fd, w.pending)
	w.pending = append(w.pending[:0], left...)
	return err
}

// write writes what the socket has room for, and keeps the rest, which flush or the next write writes.
func (s *secure) write(data []byte) error {
	if len(data) == 0 {
		return s.wire.flush()
	}
	_, err := s.tls.Write(data)
	return err
}

// read is as epoll.Read: EAGAIN where nothing is there, 0 bytes at the end. Where the end came with the last
// bytes, the second value is true.
func (s *secure) read(into []byte) (int, bool, error) {
	n, err := s.tls.Read(into)
	switch {
	case err == nil || n > 0:
		return n, err != nil && err != error(notYet{}), nil
	case err == error(notYet{}):
		return 0, false, unix.EAGAIN
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return 0, true, nil
	}
	return 0, true, err
}

// dial opens a connection and shakes hands, both within the limit.
func dial(h *host, config *tls.Config, limit time.Duration) (*secure, error) {
	until, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	to := h.address.Load()
	opened, err := (&net.Dialer{}).DialContext(until, "tcp", net.JoinHostPort(to.ip.String(), strconv.Itoa(to.port)))
	if err != nil {
		return nil, err
	}
	// The descriptor that is used from the handshake on is another one, which Go's own poller does not know.
	defer opened.Close()
	w := &wire{Conn: opened, fd: -1}
	own := config.Clone()
	own.ServerName = h.name
	s := &secure{tls.Client(w, own), w}
	if err := s.tls.HandshakeContext(until); err != nil {
		return nil, err
	}
	raw, err := opened.(*net.TCPConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { w.fd, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	return s, errors.Join(err, failed)
}

// dialled is what came of a dial.
type dialled struct {
	connection *connection
	born       int32
	secure     *secure
	err        error
}
