// Reading a socket together with when its bytes came.
package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// letter is what the kernel fills in when a socket is read that tells when its bytes came.
type letter struct {
	head unix.Msghdr
	body unix.Iovec
	// The only note is of when.
	note unix.Cmsghdr
	when unix.Timespec
}

// read reads as epoll.Read does. The kernel notes in the letter when the last of the bytes came, by the real-time
// clock: 0 where it does not.
func (l *letter) read(fd int, bytes []byte) (int, error) {
	l.body.Base, l.when = &bytes[0], unix.Timespec{}
	l.body.SetLen(len(bytes))
	l.head = unix.Msghdr{Iov: &l.body, Iovlen: 1, Control: (*byte)(unsafe.Pointer(&l.note))}
	l.head.SetControllen(int(unsafe.Sizeof(l.note) + unsafe.Sizeof(l.when)))
	count, _, failed := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&l.head)), 0)
	if failed != 0 {
		return 0, failed
	}
	return int(count), nil
}
