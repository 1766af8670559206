package service

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// The kernel's question and answer about one socket: sock_diag(7), struct inet_diag_req_v2 and
// inet_diag_msg, each after a header as in netlink(7).
const (
	queryBytes   = unix.SizeofNlMsghdr + 56
	stateOffset  = unix.SizeofNlMsghdr + 1
	rqueueOffset = unix.SizeofNlMsghdr + 56
	stateListen  = 10
)

// ListenerQueue tells how many connections stand in the accept queue of the port's listener in this
// network namespace, false if there is none or the kernel does not tell. It asks for the one socket:
// /proc/net/tcp, which lists them all, costs the kernel milliseconds each time, however few there are.
func ListenerQueue(port int) (int, bool) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, false
	}
	defer unix.Close(fd)
	var query [queryBytes]byte
	binary.NativeEndian.PutUint32(query[0:], queryBytes)
	binary.NativeEndian.PutUint16(query[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(query[6:], unix.NLM_F_REQUEST)
	request := query[unix.SizeofNlMsghdr:]
	// By IPv4 a listener is found that is bound for both families, too. The connection from 0.0.0.0:0
	// to 127.0.0.1 does not exist, so the kernel finds who would accept it.
	request[0], request[1] = unix.AF_INET, unix.IPPROTO_TCP
	binary.BigEndian.PutUint16(request[8:], uint16(port))
	copy(request[12:], []byte{127, 0, 0, 1})
	for i := range request[48:56] {
		request[48+i] = 0xff // no cookie
	}
	if unix.Sendto(fd, query[:], 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
		return 0, false
	}
	// The kernel has answered when the sending returns.
	var answer [4096]byte
	read, err := unix.Read(fd, answer[:])
	if err != nil || read < rqueueOffset+4 ||
		binary.NativeEndian.Uint16(answer[4:]) != unix.SOCK_DIAG_BY_FAMILY || answer[stateOffset] != stateListen {
		return 0, false
	}
	return int(binary.NativeEndian.Uint32(answer[rqueueOffset:])), true
}
