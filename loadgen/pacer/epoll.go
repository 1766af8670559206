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
// early: the caller, who finds nothing due, waits again.
func wait(poll int, events []unix.EpollEvent, left time.Duration) int {
	if !coarse.Load() {
		given := unix.NsecToTimespec(left.Nanoseconds())
		// A call that cannot block need not be told to Go's scheduler.
		call := unix.Syscall6
		if left == 0 {
			call = unix.RawSyscall6
		}
		count, _, failed := call(unix.SYS_EPOLL_PWAIT2, uintptr(poll), uintptr(unsafe.Pointer(&events[0])),
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

// atOnce reads from or writes to a socket that does not block; bytes is not empty. Go's scheduler is not
// told of the call: were the thread interrupted in it, Go's watcher would take the loop's processor away.
func atOnce(call uintptr, fd int, bytes []byte) (int, error) {
	count, _, failed := unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(&bytes[0])), uintptr(len(bytes)))
	if failed != 0 {
		return 0, failed
	}
	return int(count), nil
}
