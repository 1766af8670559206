package service

import (
	"context"
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
	length func(port int) (int, bool)
	names  map[int]string

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

// NewAcceptQueues takes what tells a queue's length (ListenerQueue, but for tests), and the listeners'
// names by their ports.
func NewAcceptQueues(length func(port int) (int, bool), names map[int]string) *AcceptQueues {
	return &AcceptQueues{length: length, names: names, queues: map[string]*acceptQueue{}}
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
	for port, name := range q.names {
		if length, known := q.length(port); known {
			lengths[name] = length
		}
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

// Describe names the metrics.
func (q *AcceptQueues) Describe(out chan<- *prometheus.Desc) {
	for _, one := range []*prometheus.Desc{queueLength, queuedSeconds, occupiedSeconds, overflows} {
		out <- one
	}
}

// Collect tells them.
func (q *AcceptQueues) Collect(out chan<- prometheus.Metric) {
	if total := overflowed("/proc"); total != nil {
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
func overflowed(proc string) *float64 {
	fs, err := procfs.NewFS(proc)
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
