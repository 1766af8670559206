// Package epoll is what the event loops of pacer and of the downstream ask of Linux: which sockets have changed, sleeping
// to the nanosecond, reading and writing without waiting.
package epoll

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// MaxEvents is how many events are taken at once.
	MaxEvents = 128
	// Woken is the key of the event that Wake causes.
	Woken = -1
	// longWait is from where on the kernel may wake noticeably late: by a thousandth of a wait.
	longWait = 100 * time.Millisecond
)

// coarse is true once the kernel (before 5.11), or a filter of system calls, refused epoll_pwait2.
var coarse atomic.Bool

// Poll reports changes of sockets to one goroutine, which any other may wake. An event has the key of its socket in Fd,
// and in Pad what tells this socket from an earlier one with the same key.
type Poll struct {
	fd, wake int
	events   [MaxEvents]unix.EpollEvent
}

// New makes a Poll without sockets.
func New() (*Poll, error) {
	p := &Poll{wake: -1}
	var err error
	if p.fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	if p.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		err = p.Add(p.wake, unix.EPOLLIN, Woken, 0)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Close releases the descriptors of the Poll itself.
func (p *Poll) Close() {
	_ = unix.Close(p.fd)
	if p.wake >= 0 {
		_ = unix.Close(p.wake)
	}
}

// Add has these events of a socket reported, each change once, until the socket is closed.
func (p *Poll) Add(socket int, events uint32, key, pad int32) error {
	return unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, socket, &unix.EpollEvent{Events: events | unix.EPOLLET, Fd: key, Pad: pad})
}

// Wake ends the wait of the goroutine that waits, or its next one. Any goroutine may call it.
func (p *Poll) Wake() {
	_, _ = unix.Write(p.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

// Look returns the events that are there already.
func (p *Poll) Look() []unix.EpollEvent {
	count, _, failed := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events[0])), MaxEvents, 0, 0, 0)
	return p.taken(count, failed)
}

// Wait returns events as soon as there are some, and none after the given time or after a signal. It may return a little
// early: the caller finds nothing due, and waits again. Go's scheduler is not told of the call: were the thread interrupted
// in it, Go's watcher (sysmon) would take the loop's processor away. So nobody waits for longer than some milliseconds.
func (p *Poll) Wait(left time.Duration) []unix.EpollEvent {
	if coarse.Load() {
		return p.waitCoarsely(&left)
	}
	given := unix.NsecToTimespec(left.Nanoseconds())
	count, _, failed := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events[0])), MaxEvents,
		uintptr(unsafe.Pointer(&given)), 0, 0)
	if refused(failed) {
		return p.waitCoarsely(&left)
	}
	return p.taken(count, failed)
}

// WaitLong waits as Wait does, for any time, and without an end where it is nil. The scheduler is told. Of a long wait it leaves
// out the last part, in which the kernel would be late.
func (p *Poll) WaitLong(left *time.Duration) []unix.EpollEvent {
	var timeout *unix.Timespec
	if left != nil {
		shorter := *left
		if shorter > longWait {
			shorter -= shorter / 512
		}
		given := unix.NsecToTimespec(shorter.Nanoseconds())
		left, timeout = &shorter, &given
	}
	if coarse.Load() {
		return p.waitCoarsely(left)
	}
	count, _, failed := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events[0])), MaxEvents,
		uintptr(unsafe.Pointer(timeout)), 0, 0)
	if refused(failed) {
		return p.waitCoarsely(left)
	}
	return p.taken(count, failed)
}

// refused is true where epoll_pwait2 was. From then on nobody asks for it.
func refused(failed unix.Errno) bool {
	if failed != unix.ENOSYS && failed != unix.EPERM {
		return false
	}
	coarse.Store(true)
	return true
}

// waitCoarsely counts in milliseconds, rounded up.
func (p *Poll) waitCoarsely(left *time.Duration) []unix.EpollEvent {
	milliseconds := -1
	if left != nil {
		milliseconds = int((*left + time.Millisecond - 1) / time.Millisecond)
	}
	count, _ := unix.EpollWait(p.fd, p.events[:], milliseconds)
	return p.events[:max(0, count)]
}

func (p *Poll) taken(count uintptr, failed unix.Errno) []unix.EpollEvent {
	if failed != 0 {
		return nil
	}
	return p.events[:count]
}

// Doze sleeps for a short time and then returns the events that came by then. So what comes does not wake the thread.
func (p *Poll) Doze(left time.Duration) []unix.EpollEvent {
	Sleep(left)
	return p.Look()
}

// Sleep sleeps for a short time. Go's scheduler is not told.
func Sleep(left time.Duration) {
	given := unix.NsecToTimespec(left.Nanoseconds())
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&given)), 0, 0)
}

// Read reads from a socket that does not block. The buffer is not empty. Go's scheduler is not told.
func Read(socket int, buffer []byte) (int, error) { return atOnce(unix.SYS_READ, socket, buffer) }

// Write writes to a socket that does not block. data is not empty. Go's scheduler is not told.
func Write(socket int, data []byte) (int, error) { return atOnce(unix.SYS_WRITE, socket, data) }

func atOnce(call uintptr, socket int, bytes []byte) (int, error) {
	count, _, failed := unix.RawSyscall(call, uintptr(socket), uintptr(unsafe.Pointer(&bytes[0])), uintptr(len(bytes)))
	if failed != 0 {
		return 0, failed
	}
	return int(count), nil
}
