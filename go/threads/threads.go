// Package threads reads how long the threads of a process ran on a CPU, and how long they were ready to run and waited
// for one (proc(5): /proc/<pid>/task/<tid>/schedstat).
package threads

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// most is how many threads are read at most. The lab's programs in Go have some ten.
const most = 256

// Times are sums over all threads of a process. Waits of threads overlap, so Queue may rise faster than time passes.
type Times struct{ Run, Queue time.Duration }

// Reader adds up the times of the threads of one process. It is not safe for use by several goroutines.
type Reader struct {
	tasks string
	// last is what each thread had when it was last read, by its number.
	last map[string]Times
	sum  Times
}

// New reads the process of a directory, such as /proc/self.
func New(process string) *Reader { return &Reader{tasks: filepath.Join(process, "task")} }

// Read returns the sums, which never fall: what an ended thread had used when it was last read stays in them. They are
// unknown if the kernel does not count (each schedstat is 0 0 0), if a thread cannot be read, and of more than 256 threads.
func (r *Reader) Read() (sum Times, known bool) {
	tasks, err := os.ReadDir(r.tasks)
	if err != nil || len(tasks) > most {
		return Times{}, false
	}
	sum = r.sum
	now := make(map[string]Times, len(tasks))
	for _, task := range tasks {
		thread, err := read(filepath.Join(r.tasks, task.Name(), "schedstat"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			// It has ended.
			continue
		}
		if err != nil {
			return Times{}, false
		}
		last := r.last[task.Name()]
		if thread.Run < last.Run || thread.Queue < last.Queue {
			// Another thread has its number.
			last = Times{}
		}
		sum.Run += thread.Run - last.Run
		sum.Queue += thread.Queue - last.Queue
		now[task.Name()] = thread
	}
	r.sum, r.last = sum, now
	return sum, sum.Run > 0
}

func read(schedstat string) (Times, error) {
	text, err := os.ReadFile(schedstat)
	if err != nil {
		return Times{}, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return Times{}, errors.New(schedstat + " has no two numbers")
	}
	run, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return Times{}, err
	}
	queue, err := strconv.ParseInt(fields[1], 10, 64)
	return Times{time.Duration(run), time.Duration(queue)}, err
}

// Find returns the directory of the process with this name; empty without one.
func Find(proc, name string) string {
	found, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "comm"))
	for _, comm := range found {
		if text, err := os.ReadFile(comm); err == nil && strings.TrimSpace(string(text)) == name {
			return filepath.Dir(comm)
		}
	}
	return ""
}
