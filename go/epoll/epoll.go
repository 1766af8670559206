// Package epoll is what the event loops of pacer and of the downstream ask of Linux: which sockets have changed, sleeping
// to the nanosecond, reading and writing without waiting. Where Go's scheduler is not told of a call, the call is short.
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
	if failed != 0 {
		return nil
	}
	return p.events[:count]
}

// Wait returns events as soon as there are some, and none after the given time or after a signal. It may return a little
// early: the caller finds nothing due, and waits again. Go's scheduler is not told of the call: were the thread interrupted
// in it, Go's watcher (sysmon) would take the loop's processor away. So nobody waits for longer than some milliseconds.
func (p *Poll) Wait(left time.Duration) []unix.EpollEvent { return p.wait(&left, false) }

// WaitLong waits as Wait does, for any time, and without an end where it is nil. The scheduler is told. Of a long wait it leaves
// out the last part, in which the kernel would be late.
func (p *Poll) WaitLong(left *time.Duration) []unix.EpollEvent {
	if left != nil && *left > longWait {
		shorter := *left - *left/512
		left = &shorter
	}
	return p.wait(left, true)
}

func (p *Poll) wait(left *time.Duration, tells bool) []unix.EpollEvent {
	var timeout *unix.Timespec
	milliseconds := -1
	if left != nil {
		given := unix.NsecToTimespec(left.Nanoseconds())
		timeout, milliseconds = &given, int((*left+time.Millisecond-1)/time.Millisecond)
	}
	if !coarse.Load() {
		var count uintptr
		var failed unix.Errno
		if tells {
			count, _, failed = unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events[0])), MaxEvents,
				uintptr(unsafe.Pointer(timeout)), 0, 0)
		} else {
			count, _, failed = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events[0])), MaxEvents,
				uintptr(unsafe.Pointer(timeout)), 0, 0)
		}
		if failed == 0 {
			return p.events[:count]
		}
		if failed != unix.ENOSYS && failed != unix.EPERM {
			return nil
		}
		coarse.Store(true)
	}
	count, _ := unix.EpollWait(p.fd, p.events[:], milliseconds)
	return p.events[:max(0, count)]
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

// Read reads from a socket that does not block, into a buffer that is not empty. EAGAIN is that nothing is there.
func Read(socket int, buffer []byte) (int, error) {
	return atOnce(unix.SYS_READ, socket, unsafe.Pointer(&buffer[0]), len(buffer))
}

// Write writes to a socket that does not block, and returns what it has no room for.
func Write(socket int, data []byte) ([]byte, error) {
	for len(data) > 0 {
		count, err := atOnce(unix.SYS_WRITE, socket, unsafe.Pointer(&data[0]), len(data))
		if err == unix.EAGAIN {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
		data = data[count:]
	}
	return nil, nil
}

// DatedReader reads a socket with SO_TIMESTAMPNS, together with when the bytes came.
type DatedReader struct {
	message unix.Msghdr
	bytes   unix.Iovec
	note    unix.Cmsghdr
	// Came is what the note says: when the last of the bytes came, by the real-time clock; 0 where the kernel did not note it.
	Came unix.Timespec
}

// Read reads as the function Read does.
func (r *DatedReader) Read(socket int, buffer []byte) (int, error) {
	r.bytes.Base, r.Came = &buffer[0], unix.Timespec{}
	r.bytes.SetLen(len(buffer))
	r.message = unix.Msghdr{Iov: &r.bytes, Iovlen: 1, Control: (*byte)(unsafe.Pointer(&r.note))}
	r.message.SetControllen(int(unsafe.Sizeof(r.note) + unsafe.Sizeof(r.Came)))
	return atOnce(unix.SYS_RECVMSG, socket, unsafe.Pointer(&r.message), 0)
}

func atOnce(call uintptr, socket int, at unsafe.Pointer, length int) (int, error) {
	for {
		count, _, failed := unix.RawSyscall(call, uintptr(socket), uintptr(at), uintptr(length))
		switch failed {
		case 0:
			return int(count), nil
		case unix.EINTR:
		default:
			return 0, failed
		}
	}
}
