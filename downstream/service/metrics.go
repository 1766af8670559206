package service

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Metrics count what the traffic port does. Methods are safe for use by many goroutines and
// cost some tens of nanoseconds each.
type Metrics struct {
	registry *prometheus.Registry
	arrived  atomic.Int64
	answered atomic.Int64
	accepted atomic.Int64
	lag      prometheus.Histogram
}

// NewMetrics registers everything that GET /metrics exports.
func NewMetrics(delay *Delay, queues *AcceptQueues) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		// Finer than the lab's latency buckets: a lag of a few milliseconds already says
		// that this service is short of CPU.
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "lab_downstream_lag_seconds",
			Help:    "Time by which answers were later than their request's arrival plus the delay.",
			Buckets: []float64{.0001, .00025, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5},
		}),
	}
	m.registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "lab_downstream_requests_total",
			Help: "Requests answered after the delay; health checks are not counted.",
		}, func() float64 { return float64(m.answered.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "lab_downstream_in_flight",
			Help: "Requests that wait for their delay to pass.",
		}, func() float64 { return float64(m.arrived.Load() - m.answered.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "lab_downstream_delay_seconds",
			Help: "The delay that is set.",
		}, func() float64 { return delay.Get().Seconds() }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "lab_downstream_accepted_connections_total",
			Help: "Connections of the traffic port that were accepted, those of health checks included.",
		}, func() float64 { return float64(m.accepted.Load()) }),
		m.lag,
		queues,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Counted is the listener; what it accepts is counted.
func (m *Metrics) Counted(listener net.Listener) net.Listener {
	return countedListener{listener, &m.accepted}
}

type countedListener struct {
	net.Listener
	accepted *atomic.Int64
}

// Accept is the listener's own.
func (l countedListener) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return connection, err
}

func (m *Metrics) arrive() { m.arrived.Add(1) }

func (m *Metrics) answer(lag time.Duration) {
	m.lag.Observe(lag.Seconds())
	m.answered.Add(1)
}
