// A run of a load: its loops, and the lines that tell what they counted.
package main

import (
	"encoding/json"
	"io"
	"math"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lab/threads"
)

const (
	// stopAhead is how long after a signal the run ends, so that every loop learns of it before.
	stopAhead = 20 * time.Millisecond
	// stopPatience is how long after a signal the process ends at the latest, whoever does not read its lines.
	stopPatience = 900 * time.Millisecond
	// parentEvery is how often it is looked whether the parent is still there.
	parentEvery = 250 * time.Millisecond
)

// run is a load that is put on.
type run struct {
	load        *load
	descriptors int
	out         io.Writer
	logs        *logs
	start       time.Time
	end         atomic.Int64
	loops       []*loop
	finished    []chan *tally
	blank       chan *tally
	threads     *threads.Reader
	written     error
}

// format is of the lines.
const format = 2

// head is the first line.
type head struct {
	Pacer  string  `json:"pacer"`
	Format int     `json:"format"`
	Unix   float64 `json:"unix_s"`
	Load   words   `json:"load"`
	Nofile int     `json:"nofile"`
}

// total is the last line.
type total struct {
	Ended        string         `json:"ended"`
	Run          float64        `json:"run_s"`
	Sent         int            `json:"sent"`
	Due          int            `json:"due"`
	Ok           int            `json:"ok"`
	HTTPErrors   int            `json:"http_errors"`
	SocketErrors map[string]int `json:"socket_errors"`
	Timeouts     int            `json:"timeouts"`
	Unfinished   int            `json:"unfinished"`
	CPU          float64        `json:"cpu_s"`
}

// totalOf is the last line of a sum.
func totalOf(sum *tally) *total {
	return &total{Run: sum.Length, Sent: sum.Sent, Due: sum.Due, Ok: sum.Ok, HTTPErrors: sum.HTTPErrors,
		SocketErrors: sum.SocketErrors, Timeouts: sum.Timeouts, Unfinished: sum.Unfinished}
}

// perLoop is the rate of an open load up to which it has one loop, in requests/s: half of what one was seen to send.
const perLoop = 20_000

// loopsFor is how many loops a load gets where it does not say: one for each four processors. An open load has no more than its
// rate needs: a loop cannot send on another one's connections, so with several some requests wait while connections are free.
func loopsFor(l *load) int {
	if *l.words.Loops > 0 {
		return *l.words.Loops
	}
	most := min(runtime.NumCPU()/4, *l.words.Connections/len(l.hosts))
	if l.open {
		most = min(most, int(math.Ceil(l.words.highestRate()/perLoop)))
	}
	return max(1, most)
}

// newRun makes everything ready. It resolves names, and sends nothing.
func newRun(l *load, descriptors int, out io.Writer) (*run, error) {
	r := &run{load: l, descriptors: descriptors, out: out, threads: threads.New("/proc/self")}
	for _, h := range l.hosts {
		if err := h.find(); err != nil {
			return nil, err
		}
	}
	var err error
	if r.logs, err = newLogs(l); err != nil {
		return nil, err
	}
	loops := loopsFor(l)
	// While one is idle, Go's watcher leaves a loop that sleeps alone.
	runtime.GOMAXPROCS(loops + 1)
	r.end.Store(int64(l.run))
	r.blank = make(chan *tally, 2*loops)
	// Room for all, so that no loop waits for whoever reads the lines.
	most := int(l.run/time.Second) + 2
	clock := func() time.Duration { return time.Since(r.start) }
	for number := range loops {
		finished := make(chan *tally, most)
		o, err := newLoop(l, number, loops, clock, &r.end, finished, r.blank)
		if err != nil {
			return nil, err
		}
		// crypto/tls reads in its own way.
		o.dated = !l.secure
		r.loops = append(r.loops, o)
		r.finished = append(r.finished, finished)
	}
	return r, nil
}

// do puts the load on, until its end, a signal or the parent's death. It returns the status of the process.
func (r *run) do(signals <-chan os.Signal, orphaned func() bool) (int, error) {
	r.start = time.Now()
	r.begin()
	told := make(chan *total, 1)
	for _, o := range r.loops {
		go o.run()
	}
	go func() { told <- r.tell() }()
	look := time.NewTicker(parentEvery)
	defer look.Stop()
	ended, status := "complete", ranToItsEnd
	var patience <-chan time.Time
	stop := func(how string, with int) {
		if patience == nil {
			ended, status = how, with
			patience = time.After(stopPatience)
			r.stop()
		}
	}
	for {
		select {
		case t := <-told:
			t.Ended = ended
			t.CPU = cpuSeconds()
			if r.write(t); r.written != nil {
				return wentWrong, r.written
			}
			return status, nil
		case s := <-signals:
			stop("interrupted", bySignal+int(s.(syscall.Signal)))
		case <-look.C:
			if orphaned() {
				stop("orphaned", bySignal+int(syscall.SIGTERM))
			}
		case <-patience:
			return status, nil
		}
	}
}

// stop ends the run in a moment.
func (r *run) stop() {
	r.end.Store(int64(min(r.load.run, time.Since(r.start)+stopAhead)))
	for _, o := range r.loops {
		o.poll.Wake()
	}
}

func (r *run) begin() {
	r.write(head{version, format, float64(r.start.UnixMicro()) / 1e6, r.load.words.withoutValues(), r.descriptors})
}

// tell writes the line of each second when all loops have ended it, and returns the sum of all.
func (r *run) tell() *total {
	sum := newTally(false)
	before, known := r.threads.Read()
	for line := range r.finished[0] {
		for _, finished := range r.finished[1:] {
			other := <-finished
			line.merge(other)
			r.free(other)
		}
		now, counted := r.threads.Read()
		if known && counted {
			run, queue := (now.Run - before.Run).Microseconds(), (now.Queue - before.Queue).Microseconds()
			line.Run, line.Queue = &run, &queue
		}
		before, known = now, counted
		r.write(line)
		if err := r.logs.write(r.start, line); err != nil && r.written == nil {
			r.written = err
		}
		sum.follow(line)
		r.free(line)
		if r.written != nil {
			r.stop()
		}
	}
	if err := r.logs.close(); err != nil && r.written == nil {
		r.written = err
	}
	return totalOf(sum)
}

func (r *run) free(t *tally) {
	t.clear()
	select {
	case r.blank <- t:
	default:
	}
}

// write writes a line at once, and none after one that could not be written.
func (r *run) write(line any) {
	if r.written == nil {
		r.written = writeLine(r.out, line)
	}
}

func writeLine(out io.Writer, line any) error {
	text, err := json.Marshal(line)
	if err == nil {
		_, err = out.Write(append(text, '\n'))
	}
	return err
}

// cpuSeconds is what the process has used.
func cpuSeconds() float64 {
	var used unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}
