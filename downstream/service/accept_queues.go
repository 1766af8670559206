package service

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
)

const (
	// lookInterval is how often the accept queues are looked at.
	lookInterval = 100 * time.Millisecond
	// longestOf is over how long the longest length is told: Prometheus' scrape interval.
	longestOf = 2 * time.Second
	// lineBytes is about one line of the kernel's table, which writes no more of it than is asked for.
	lineBytes = 256
	// listening is a socket's state in the kernel's table.
	listening = "0A"
)

var (
	queueLength = prometheus.NewDesc("lab_path_accept_queue_length",
		"Connections in the listener's accept queue: the most of the last 2 s.", []string{"listener"}, nil)
	queuedSeconds = prometheus.NewDesc("lab_path_accept_queue_connection_seconds_total",
		"Seconds that connections stood in the listener's accept queue, in sum: its rate is the mean length.",
		[]string{"listener"}, nil)
	occupiedSeconds = prometheus.NewDesc("lab_path_accept_queue_occupied_seconds_total",
		"Seconds in which a connection stood in the listener's accept queue.", []string{"listener"}, nil)
	overflows = prometheus.NewDesc("lab_path_listen_overflows_total",
		"Connections refused a place because an accept queue of this network namespace was full.", nil, nil)
)

// AcceptQueues tells how many connections stand in the accept queues of listeners in this network
// namespace. It looks at them all the time, for a queue may come and go between two scrapes. What the
// kernel does not tell has no series: it is never 0 instead. It is safe for use by many goroutines.
type AcceptQueues struct {
	proc  string
	names map[int]string

	mu     sync.Mutex
	looked time.Time
	queues map[string]*acceptQueue
}

// acceptQueue is what was seen of one listener.
type acceptQueue struct {
	// open is whether it listened at the last look, length how many stood there then.
	open   bool
	length int
	recent []pastLength
	// waited and occupied are seconds: of connections in sum, and with any connection.
	waited, occupied float64
}

type pastLength struct {
	at     time.Time
	length int
}

// NewAcceptQueues takes where proc(5) is mounted, and the listeners' names by their ports.
func NewAcceptQueues(proc string, names map[int]string) *AcceptQueues {
	return &AcceptQueues{proc: proc, names: names, queues: map[string]*acceptQueue{}}
}

// Run looks at the queues until the context ends.
func (q *AcceptQueues) Run(ctx context.Context) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			q.Look(now)
		case <-ctx.Done():
			return
		}
	}
}

// Look reads the queues. Each counts as long as it is now until the next look.
func (q *AcceptQueues) Look(now time.Time) {
	lengths := map[string]int{}
	// A port is bound for IPv4, or for both families at once, which is listed as IPv6.
	for _, table := range []string{"tcp", "tcp6"} {
		q.read(filepath.Join(q.proc, "self", "net", table), lengths)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	passed := now.Sub(q.looked).Seconds()
	q.looked = now
	for name := range lengths {
		if q.queues[name] == nil {
			q.queues[name] = &acceptQueue{}
		}
	}
	for name, queue := range q.queues {
		if queue.length > 0 {
			queue.waited += passed * float64(queue.length)
			queue.occupied += passed
		}
		queue.length, queue.open = lengths[name], false
		if _, queue.open = lengths[name]; queue.open {
			queue.recent = append(queue.recent, pastLength{now, queue.length})
		}
		for len(queue.recent) > 0 && now.Sub(queue.recent[0].at) > longestOf {
			queue.recent = queue.recent[1:]
		}
	}
}

// read adds the lengths of a table: a line per socket, "sl local remote st tx_queue:rx_queue …". Those
// that listen come first, and their rx_queue is the length of the accept queue. It stops at the first
// other one, of which there may be thousands.
func (q *AcceptQueues) read(path string, lengths map[string]int) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	lines := bufio.NewReaderSize(file, lineBytes)
	if _, err := lines.ReadString('\n'); err != nil {
		return
	}
	for {
		line, err := lines.ReadString('\n')
		fields := strings.Fields(line)
		if err != nil || len(fields) < 5 || fields[3] != listening {
			return
		}
		_, port, _ := strings.Cut(fields[1], ":")
		_, length, _ := strings.Cut(fields[4], ":")
		if name, known := q.names[int(hexadecimal(port))]; known {
			lengths[name] += int(hexadecimal(length))
		}
	}
}

// hexadecimal is -1 for what is no such number, which the kernel does not write.
func hexadecimal(text string) int64 {
	number, err := strconv.ParseInt(text, 16, 64)
	if err != nil {
		return -1
	}
	return number
}

// Describe names the metrics.
func (q *AcceptQueues) Describe(out chan<- *prometheus.Desc) {
	for _, one := range []*prometheus.Desc{queueLength, queuedSeconds, occupiedSeconds, overflows} {
		out <- one
	}
}

// Collect tells them.
func (q *AcceptQueues) Collect(out chan<- prometheus.Metric) {
	if total := q.overflowed(); total != nil {
		out <- prometheus.MustNewConstMetric(overflows, prometheus.CounterValue, *total)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for name, queue := range q.queues {
		out <- prometheus.MustNewConstMetric(queuedSeconds, prometheus.CounterValue, queue.waited, name)
		out <- prometheus.MustNewConstMetric(occupiedSeconds, prometheus.CounterValue, queue.occupied, name)
		if queue.open {
			longest := 0
			for _, one := range queue.recent {
				longest = max(longest, one.length)
			}
			out <- prometheus.MustNewConstMetric(queueLength, prometheus.GaugeValue, float64(longest), name)
		}
	}
}

// overflowed is the kernel's count for this network namespace, nil where it tells none.
func (q *AcceptQueues) overflowed() *float64 {
	fs, err := procfs.NewFS(q.proc)
	if err != nil {
		return nil
	}
	self, err := fs.Self()
	if err != nil {
		return nil
	}
	counted, err := self.Netstat()
	if err != nil {
		return nil
	}
	return counted.ListenOverflows
}
