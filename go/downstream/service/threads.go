package service

import (
	"os"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"lab/threads"
)

// proxy is the name of Toxiproxy's process.
const proxy = "toxiproxy"

var (
	runSeconds = prometheus.NewDesc("lab_process_run_seconds_total",
		"Time in which the threads of a process ran on a CPU.", []string{"process"}, nil)
	queueSeconds = prometheus.NewDesc("lab_process_runq_seconds_total",
		"Time in which the threads of a process were ready to run and waited for a CPU.", []string{"process"}, nil)
)

// ThreadTimes tells of this process, and of Toxiproxy where both share a PID namespace: its image has neither a shell nor
// such a metric. What is not known is absent.
type ThreadTimes struct {
	proc string
	mu   sync.Mutex
	own  *threads.Reader
	// proxy reads the process in proxyAt, a directory of proc.
	proxy   *threads.Reader
	proxyAt string
}

// NewThreadTimes takes the directory of all processes, which is /proc but for tests.
func NewThreadTimes(proc string) *ThreadTimes {
	return &ThreadTimes{proc: proc, own: threads.New(proc + "/self")}
}

// Describe names the metrics.
func (t *ThreadTimes) Describe(out chan<- *prometheus.Desc) {
	out <- runSeconds
	out <- queueSeconds
}

// Collect tells them.
func (t *ThreadTimes) Collect(out chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tell(out, "downstream", t.own)
	if _, err := os.Stat(t.proxyAt); err != nil {
		// It was not found yet, or it was restarted: then its counters begin again.
		t.proxyAt = threads.Find(t.proc, proxy)
		t.proxy = threads.New(t.proxyAt)
	}
	if t.proxyAt != "" {
		tell(out, proxy, t.proxy)
	}
}

func tell(out chan<- prometheus.Metric, process string, reader *threads.Reader) {
	if sum, known := reader.Read(); known {
		out <- prometheus.MustNewConstMetric(runSeconds, prometheus.CounterValue, sum.Run.Seconds(), process)
		out <- prometheus.MustNewConstMetric(queueSeconds, prometheus.CounterValue, sum.Queue.Seconds(), process)
	}
}
