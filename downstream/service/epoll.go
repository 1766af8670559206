package service

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// longWait is from where on the kernel may wake noticeably late: by a thousandth of a wait.
const longWait = 100 * time.Millisecond

// coarse is whether the kernel (before 5.11), or a filter of system calls, refused epoll_pwait2.
var coarse atomic.Bool

// wait returns how many events came, 0 after the given time or after a signal. nil is as long as it takes.
// It does not return much later than asked: of a long wait it leaves out the last part, and the caller,
// who finds nothing due, waits again.
func wait(poll int, events []unix.EpollEvent, left *time.Duration) int {
	var timeout *unix.Timespec
	if left != nil {
		if *left > longWait {
			*left -= *left / 512
		}
		given := unix.NsecToTimespec(left.Nanoseconds())
		timeout = &given
	}
	if !coarse.Load() {
		count, _, failed := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(poll), uintptr(unsafe.Pointer(&events[0])),
			uintptr(len(events)), uintptr(unsafe.Pointer(timeout)), 0, 0)
		if failed == 0 {
			return int(count)
		}
		if failed != unix.ENOSYS && failed != unix.EPERM {
			return 0
		}
		coarse.Store(true)
	}
	milliseconds := -1
	if left != nil {
		milliseconds = int((*left + time.Millisecond - 1) / time.Millisecond)
	}
	count, _ := unix.EpollWait(poll, events, milliseconds)
	return max(0, count)
}

// look returns how many events are there already.
func look(poll int, events []unix.EpollEvent) int {
	count, _, failed := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(poll), uintptr(unsafe.Pointer(&events[0])),
		uintptr(len(events)), 0, 0, 0)
	if failed != 0 {
		return 0
	}
	return int(count)
}

// rest sleeps for at most the given time, which is short: Go's scheduler is not told (see atOnce).
func rest(left time.Duration) {
	given := unix.NsecToTimespec(left.Nanoseconds())
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&given)), 0, 0)
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
