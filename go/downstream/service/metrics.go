package service

import (
	"sort"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

var (
	requestsTotal = prometheus.NewDesc("lab_downstream_requests_total",
		"Requests answered after the delay; health checks are not counted.", nil, nil)
	inFlight = prometheus.NewDesc("lab_downstream_in_flight",
		"Requests that wait for their delay to pass.", nil, nil)
	loopsNow = prometheus.NewDesc("lab_downstream_loops",
		"Event loops, each a thread: no more CPUs than that answer requests.", nil, nil)
	drawnTotal = prometheus.NewDesc("lab_downstream_drawn_seconds_total",
		"The sum of the delays of the requests answered, as they were drawn for each.", nil, nil)
	delaySeconds  = prometheus.NewDesc("lab_downstream_delay_seconds", "The mean of the delay that is set.", nil, nil)
	acceptedTotal = prometheus.NewDesc("lab_downstream_accepted_connections_total",
		"Connections of the traffic port that were accepted, those of health checks included.", nil, nil)
	lagSeconds = prometheus.NewDesc("lab_downstream_lag_seconds",
		"Time by which answers were later than their delay after the begin of the round that read their request.", nil, nil)
)

// lagBuckets are finer than the lab's latency buckets: a lag of a few milliseconds already says that
// this service is short of CPU.
var lagBuckets = [...]float64{.0001, .00025, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5}

// lags is a histogram. A loop fills it under its lock, so its counts are plain.
type lags struct {
	// buckets count what is at most the bound and above the one before; the last, what is above all.
	buckets [len(lagBuckets) + 1]uint64
	sum     time.Duration
}

func (l *lags) add(late time.Duration) {
	l.buckets[sort.SearchFloat64s(lagBuckets[:], late.Seconds())]++
	l.sum += late
}

func (c *counted) add(other *counted) {
	c.accepted += other.accepted
	c.answered += other.answered
	c.inFlight += other.inFlight
	c.drawn += other.drawn
	c.lag.sum += other.lag.sum
	for i, count := range other.lag.buckets {
		c.lag.buckets[i] += count
	}
}

// Metrics are what GET /metrics exports. Traffic counts for itself, and is asked at each scrape.
type Metrics struct {
	registry *prometheus.Registry
	delay    *Delay
	traffic  *Traffic
}

// NewMetrics registers everything that GET /metrics exports.
func NewMetrics(delay *Delay, traffic *Traffic, queues *AcceptQueues) *Metrics {
	m := &Metrics{prometheus.NewRegistry(), delay, traffic}
	m.registry.MustRegister(m, queues, NewThreadTimes("/proc"), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Describe names the metrics.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, out) }

// Collect tells them.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	told := m.traffic.counted()
	upTo, all := map[float64]uint64{}, uint64(0)
	for i, count := range told.lag.buckets {
		all += count
		if i < len(lagBuckets) {
			upTo[lagBuckets[i]] = all
		}
	}
	out <- prometheus.MustNewConstMetric(requestsTotal, prometheus.CounterValue, float64(told.answered))
	out <- prometheus.MustNewConstMetric(inFlight, prometheus.GaugeValue, float64(told.inFlight))
	out <- prometheus.MustNewConstMetric(loopsNow, prometheus.GaugeValue, float64(len(m.traffic.loops)))
	out <- prometheus.MustNewConstMetric(drawnTotal, prometheus.CounterValue, told.drawn.Seconds())
	out <- prometheus.MustNewConstMetric(delaySeconds, prometheus.GaugeValue, m.delay.Mean().Seconds())
	out <- prometheus.MustNewConstMetric(acceptedTotal, prometheus.CounterValue, float64(told.accepted))
	out <- prometheus.MustNewConstHistogram(lagSeconds, all, told.lag.sum.Seconds(), upTo)
}
