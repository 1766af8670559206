// Ref measures how fast this machine is now: what a second of CPU time buys in computing, in waking a thread and in
// asking over loopback. It is frozen: two outputs are comparable while source, compiler and architecture are the same,
// so all three are part of the output. It takes a second, and no options.
package main

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	probeTime   = 250 * time.Millisecond
	connections = 16
	messageSize = 128
)

//go:embed main.go
var source []byte

// probe is what its threads did: Count in CPUSeconds of their CPU time, over Seconds.
type probe struct {
	Count      uint64  `json:"count"`
	CPUSeconds float64 `json:"cpu_seconds"`
	Seconds    float64 `json:"seconds"`
}

// report is the output. ComputeOne and ComputeAll count steps of a generator of random numbers, by one thread and by one
// for each CPU; Wake counts hand-overs between two threads, Net requests over 16 connections between two.
type report struct {
	Source     string `json:"source"`
	Compiler   string `json:"compiler"`
	Arch       string `json:"arch"`
	CPUs       int    `json:"cpus"`
	ComputeOne probe  `json:"compute_one"`
	ComputeAll probe  `json:"compute_all"`
	Wake       probe  `json:"wake"`
	Net        probe  `json:"net"`
}

func main() {
	measured, err := measure()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(measured)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ref:", err)
		os.Exit(1)
	}
}

// measure runs the probes after each other.
func measure() (report, error) {
	cpus, err := allowedCPUs()
	if err != nil {
		return report{}, err
	}
	// A thread in a system call that Go's scheduler is not told of keeps its processor.
	runtime.GOMAXPROCS(len(cpus) + 3)
	debug.SetGCPercent(-1)
	hash := sha256.Sum256(source)
	r := report{
		Source: hex.EncodeToString(hash[:6]), Compiler: runtime.Version(), Arch: runtime.GOARCH, CPUs: len(cpus),
	}
	r.ComputeOne = run(thread{cpus[0], compute})
	all := make([]thread, len(cpus))
	for i, cpu := range cpus {
		all[i] = thread{cpu, compute}
	}
	r.ComputeAll = run(all...)
	first, last := cpus[0], cpus[len(cpus)-1]
	w, err := newWake()
	if err != nil {
		return report{}, err
	}
	r.Wake = run(thread{first, w.lead}, thread{last, w.follow})
	n, err := newNet()
	if err != nil {
		return report{}, err
	}
	r.Net = run(thread{first, n.ask}, thread{last, n.answer})
	if r.Wake.Count == 0 || r.Net.Count == 0 {
		return report{}, fmt.Errorf("a probe counted nothing")
	}
	return r, nil
}

func allowedCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, err
	}
	var cpus []int
	for cpu := 0; len(cpus) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// thread is a part of a probe: work that begins on a thread of its own, on one CPU, and returns what it counted.
type thread struct {
	cpu  int
	work func(until time.Time) uint64
}

// run runs a probe's threads side by side until their time is over.
func run(threads ...thread) probe {
	parts := make(chan probe)
	begun := time.Now()
	for _, t := range threads {
		go func() {
			// Never unlocked: the thread ends with this function, and its CPU with it.
			runtime.LockOSThread()
			var set unix.CPUSet
			set.Set(t.cpu)
			// Where this is refused the scheduler chooses.
			_ = unix.SchedSetaffinity(0, &set)
			used := cpuTime()
			count := t.work(begun.Add(probeTime))
			parts <- probe{Count: count, CPUSeconds: (cpuTime() - used).Seconds()}
		}()
	}
	var sum probe
	for range threads {
		part := <-parts
		sum.Count += part.Count
		sum.CPUSeconds += part.CPUSeconds
	}
	sum.Seconds = time.Since(begun).Seconds()
	return sum
}

// cpuTime is the CPU time of the calling thread.
func cpuTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

var sink atomic.Uint64

// compute steps Marsaglia's xorshift64 (Journal of Statistical Software 8(14), 2003).
func compute(until time.Time) uint64 {
	const block = 1 << 16
	x, count := uint64(88172645463325252), uint64(0)
	for ; time.Now().Before(until); count += block {
		for range block {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
	}
	sink.Store(x)
	return count
}

// wake is two threads that wake each other through the kernel.
type wake struct {
	there, back int
	over        atomic.Bool
}

func newWake() (*wake, error) {
	there, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	back, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	return &wake{there: there, back: back}, err
}

func (w *wake) lead(until time.Time) uint64 {
	word := make([]byte, 8)
	var count uint64
	for {
		for range 16 {
			word[0] = 1
			write(w.there, word)
			read(w.back, word)
			count += 2
		}
		if !time.Now().Before(until) {
			w.over.Store(true)
			word[0] = 1
			write(w.there, word)
			return count
		}
	}
}

// follow counts nothing: lead has counted both ways.
func (w *wake) follow(time.Time) uint64 {
	word := make([]byte, 8)
	for {
		read(w.there, word)
		if w.over.Load() {
			return 0
		}
		word[0] = 1
		write(w.back, word)
	}
}

// loopback is a client and a server, each a thread with an epoll.
type loopback struct {
	askingPoll, answeringPoll int
	clients                   []int
}

func newNet() (*loopback, error) {
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(listener) }()
	if err := unix.Bind(listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, err
	}
	if err := unix.Listen(listener, connections); err != nil {
		return nil, err
	}
	address, err := unix.Getsockname(listener)
	if err != nil {
		return nil, err
	}
	n := &loopback{}
	if n.askingPoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	if n.answeringPoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	for range connections {
		client, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		if err := unix.Connect(client, address); err != nil {
			return nil, err
		}
		server, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
		if err != nil {
			return nil, err
		}
		for poll, socket := range map[int]int{n.askingPoll: client, n.answeringPoll: server} {
			if err := unix.SetsockoptInt(socket, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
				return nil, err
			}
			event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(socket)}
			if err := unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, socket, &event); err != nil {
				return nil, err
			}
		}
		n.clients = append(n.clients, client)
	}
	return n, nil
}

// ask has a request under way on every connection, and ends by closing all.
func (n *loopback) ask(until time.Time) uint64 {
	message := make([]byte, messageSize)
	events := make([]unix.EpollEvent, connections)
	for _, client := range n.clients {
		write(client, message)
	}
	var bytes uint64
	for time.Now().Before(until) {
		for _, event := range events[:wait(n.askingPoll, events)] {
			bytes += uint64(read(int(event.Fd), message))
			write(int(event.Fd), message)
		}
	}
	for _, client := range n.clients {
		_ = unix.Close(client)
	}
	return bytes / messageSize
}

// answer sends back what comes, until a connection is closed. It counts nothing: ask has.
func (n *loopback) answer(time.Time) uint64 {
	message := make([]byte, messageSize)
	events := make([]unix.EpollEvent, connections)
	for {
		for _, event := range events[:wait(n.answeringPoll, events)] {
			size := read(int(event.Fd), message)
			if size == 0 {
				return 0
			}
			write(int(event.Fd), message[:size])
		}
	}
}

// read, write and wait do not tell Go's scheduler, whose own work would be measured, too. What fails counts as nothing.
func read(fd int, into []byte) int { return call(unix.SYS_READ, fd, into) }

func write(fd int, from []byte) int { return call(unix.SYS_WRITE, fd, from) }

func call(number uintptr, fd int, bytes []byte) int {
	for {
		size, _, errno := unix.RawSyscall(number, uintptr(fd), uintptr(unsafe.Pointer(&bytes[0])), uintptr(len(bytes)))
		switch errno {
		case 0:
			return int(size)
		case unix.EINTR:
		default:
			return 0
		}
	}
}

func wait(poll int, events []unix.EpollEvent) int {
	for {
		count, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(poll), uintptr(unsafe.Pointer(&events[0])),
			uintptr(len(events)), ^uintptr(0), 0, 0)
		switch errno {
		case 0:
			return int(count)
		case unix.EINTR:
		default:
			return 0
		}
	}
}
