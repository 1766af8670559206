// Where the requests go: addresses of hosts, and the causes of what goes wrong with connections.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lookupTime is how long a name may take to be resolved, tryTime how long one of several addresses may
	// take to accept a connection.
	lookupTime = 5 * time.Second
	tryTime    = time.Second
	// lookupPause is the least time between two resolutions of a name.
	lookupPause = time.Second
)

// host is where requests go. It is safe for use by many goroutines.
type host struct {
	name, port string
	address    atomic.Pointer[address]
	looking    atomic.Bool
}

type address struct {
	ip   netip.Addr
	port int
	zone uint32
}

// find resolves the name. Of several addresses it takes the first that accepts a connection, else the first.
func (h *host) find() error {
	limit, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	port, err := net.DefaultResolver.LookupPort(limit, "tcp", h.port)
	if err != nil {
		return fmt.Errorf("port %s: not a port", h.port)
	}
	found, err := net.DefaultResolver.LookupNetIP(limit, "ip", h.name)
	if err != nil || len(found) == 0 {
		return fmt.Errorf("host %s cannot be resolved: %v", h.name, err)
	}
	chosen := found[0]
	for _, one := range found {
		if len(found) == 1 {
			break
		}
		tried, err := net.DialTimeout("tcp", net.JoinHostPort(one.String(), strconv.Itoa(port)), tryTime)
		if err == nil {
			_ = tried.Close()
			chosen = one
			break
		}
	}
	to := &address{ip: chosen.Unmap(), port: port}
	if there, err := net.InterfaceByName(to.ip.Zone()); err == nil {
		to.zone = uint32(there.Index)
	}
	h.address.Store(to)
	return nil
}

// again resolves the name anew, in the background, as its address may have changed.
func (h *host) again() {
	if _, err := netip.ParseAddr(h.name); err == nil || !h.looking.CompareAndSwap(false, true) {
		return
	}
	go func() {
		_ = h.find()
		time.Sleep(lookupPause)
		h.looking.Store(false)
	}()
}

// socket is the address as Linux takes it, and its family. unix.Connect writes into it, so each caller has a new one.
func (a *address) socket() (int, unix.Sockaddr) {
	if a.ip.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: a.port, Addr: a.ip.As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: a.port, Addr: a.ip.As16(), ZoneId: a.zone}
}

// cause is an error in a word.
func cause(err error) string {
	var number unix.Errno
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &number):
		return ofNumber(number)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.As(err, &certificate):
		return "certificate"
	case errors.Is(err, io.EOF):
		return "closed"
	}
	return "tls"
}

func ofNumber(number unix.Errno) string {
	switch number {
	case unix.ECONNREFUSED:
		return "refused"
	case unix.ECONNRESET, unix.EPIPE:
		return "reset"
	case unix.ETIMEDOUT:
		return "timeout"
	case unix.EHOSTUNREACH, unix.ENETUNREACH:
		return "unreachable"
	case unix.EADDRNOTAVAIL:
		return "no_port_left"
	case unix.EMFILE, unix.ENFILE:
		return "no_descriptor_left"
	}
	return unix.ErrnoName(number)
}
