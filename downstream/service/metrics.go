package service

import (
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
	lag      prometheus.Histogram
}

// NewMetrics registers everything that GET /metrics exports.
func NewMetrics(delay *Delay) *Metrics {
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
		m.lag,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

func (m *Metrics) arrive() { m.arrived.Add(1) }

func (m *Metrics) answer(lag time.Duration) {
	m.lag.Observe(lag.Seconds())
	m.answered.Add(1)
}
