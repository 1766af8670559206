// System calls of an event loop: waiting to the nanosecond, reading and writing at once.
package main

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// coarse is whether the kernel (before 5.11), or a filter of system calls, refused epoll_pwait2.
var coarse atomic.Bool

// wait returns how many events came, 0 after the given time or after a signal. It may return a little
// early: the caller, who finds nothing due, waits again. Go's scheduler is told of no call: were the thread
// interrupted in it, Go's watcher would take the loop's processor away.
func wait(poll int, events []unix.EpollEvent, left time.Duration) int {
	if !coarse.Load() {
		given := unix.NsecToTimespec(left.Nanoseconds())
		count, _, failed := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(poll), uintptr(unsafe.Pointer(&events[0])),
			uintptr(len(events)), uintptr(unsafe.Pointer(&given)), 0, 0)
		if failed == 0 {
			return int(count)
		}
		if failed != unix.ENOSYS && failed != unix.EPERM {
			return 0
		}
		coarse.Store(true)
	}
	count, _ := unix.EpollWait(poll, events, int((left+time.Millisecond-1)/time.Millisecond))
	return max(0, count)
}

// doze waits for a time and then returns how many events came by then. So what comes does not wake the thread.
func doze(poll int, events []unix.EpollEvent, left time.Duration) int {
	given := unix.NsecToTimespec(left.Nanoseconds())
	_, _, _ = unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&given)), 0, 0, 0)
	return wait(poll, events, 0)
}

// atOnce reads from or writes to a socket that does not block; bytes is not empty.
func atOnce(call uintptr, fd int, bytes []byte) (int, error) {
	count, _, failed := unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(&bytes[0])), uintptr(len(bytes)))
	if failed != 0 {
		return 0, failed
	}
	return int(count), nil
}

// letter is what the kernel fills in when a socket is read that tells when its bytes came.
type letter struct {
	head unix.Msghdr
	body unix.Iovec
	// The only note is of when.
	note unix.Cmsghdr
	when unix.Timespec
}

// read reads as atOnce does. The kernel notes in the letter when the last of the bytes came, by the real-time
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
