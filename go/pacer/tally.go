// What is counted in one second.
package main

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"time"
)

const (
	// Three significant digits: a bucket is at most a 1024th wide, and up to 2,047 µs each has its own.
	subBuckets     = 2048
	halfSubBuckets = subBuckets / 2
	// Latencies up to 19 hours; a longer one counts as that.
	mostUs = 1<<36 - 1
	// answers have three digits of status.
	statuses = 1000
	// slice is how long the parts of a second are in which it counts what was sent: waves of requests are seen in
	// them, and not in seconds.
	slice      = 10 * time.Millisecond
	sliceCount = int(time.Second / slice)
)

// histogram counts times in the buckets of an HdrHistogram of microseconds with 3 significant digits.
// Their sum and the longest are exact to the nanosecond. Adding allocates nothing.
type histogram struct {
	counts [(36 - 11 + 2) * halfSubBuckets]uint32
	sum    time.Duration
	max    time.Duration
	count  int
}

func (h *histogram) add(t time.Duration) {
	t = max(0, t)
	h.counts[bucket(uint64(t/time.Microsecond))]++
	h.sum += t
	h.max = max(h.max, t)
	h.count++
}

// bucket is where a number of microseconds is counted.
func bucket(us uint64) int {
	us = min(us, mostUs)
	shift := max(0, bits.Len64(us)-11)
	return shift*halfSubBuckets + int(us>>shift)
}

// upper is the last number of microseconds that is counted in a bucket.
func upper(bucket int) int64 {
	shift := max(0, bucket/halfSubBuckets-1)
	return (int64(bucket-shift*halfSubBuckets)+1)<<shift - 1
}

// each tells every bucket that is not empty, the shortest times first.
func (h *histogram) each(tell func(upperUs int64, count uint32)) {
	if h.count == 0 {
		return
	}
	for i, count := range h.counts[:bucket(uint64(h.max/time.Microsecond))+1] {
		if count > 0 {
			tell(upper(i), count)
		}
	}
}

func (h *histogram) merge(other *histogram) {
	if other.count == 0 {
		return
	}
	for i, count := range other.counts[:bucket(uint64(other.max/time.Microsecond))+1] {
		h.counts[i] += count
	}
	h.sum += other.sum
	h.max = max(h.max, other.max)
	h.count += other.count
}

// UnmarshalJSON reads what MarshalJSON writes.
func (h *histogram) UnmarshalJSON(text []byte) error {
	var told struct {
		Sum     int64      `json:"sum_us"`
		Max     int64      `json:"max_us"`
		Buckets [][2]int64 `json:"buckets"`
	}
	if err := json.Unmarshal(text, &told); err != nil {
		return err
	}
	*h = histogram{sum: time.Duration(told.Sum) * time.Microsecond, max: time.Duration(told.Max) * time.Microsecond}
	for _, one := range told.Buckets {
		if at := bucket(uint64(one[0])); upper(at) == one[0] && one[1] >= 0 && at <= bucket(uint64(told.Max)) {
			h.counts[at] += uint32(one[1])
			h.count += int(one[1])
		} else {
			return fmt.Errorf("%v is no bucket", one)
		}
	}
	return nil
}

// MarshalJSON is {"sum_us", "max_us", "buckets": [[upper_us, count], …]}.
func (h *histogram) MarshalJSON() ([]byte, error) {
	text := append(make([]byte, 0, 4096), `{"sum_us":`...)
	text = strconv.AppendInt(text, h.sum.Microseconds(), 10)
	text = append(text, `,"max_us":`...)
	text = strconv.AppendInt(text, h.max.Microseconds(), 10)
	text = append(text, `,"buckets":[`...)
	before := len(text)
	h.each(func(upperUs int64, count uint32) {
		if len(text) > before {
			text = append(text, ',')
		}
		text = strconv.AppendInt(append(text, '['), upperUs, 10)
		text = strconv.AppendInt(append(text, ','), int64(count), 10)
		text = append(text, ']')
	})
	return append(text, "]}"...), nil
}

// codes are numbers of answers by status.
type codes [statuses]int

// MarshalJSON leaves out what did not come.
func (c *codes) MarshalJSON() ([]byte, error) {
	some := map[int]int{}
	for status, count := range c {
		if count > 0 {
			some[status] = count
		}
	}
	return json.Marshal(some)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *codes) UnmarshalJSON(text []byte) error {
	some := map[int]int{}
	err := json.Unmarshal(text, &some)
	for status, count := range some {
		if status < 0 || status >= statuses {
			return fmt.Errorf("%d is no status", status)
		}
		c[status] = count
	}
	return err
}

// miss is a kind of answers that were not as expected: to which of the requests, from 0, and with what status.
type miss struct{ request, status int }

// misses are numbers of answers that were not as expected, by kind.
type misses map[miss]int

// MarshalJSON is [[request, status, count], …].
func (m misses) MarshalJSON() ([]byte, error) {
	all := make([][3]int, 0, len(m))
	for one, count := range m {
		all = append(all, [3]int{one.request, one.status, count})
	}
	slices.SortFunc(all, func(a, b [3]int) int { return slices.Compare(a[:], b[:]) })
	return json.Marshal(all)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (m misses) UnmarshalJSON(text []byte) error {
	var all [][3]int
	err := json.Unmarshal(text, &all)
	for _, one := range all {
		m[miss{one[0], one[1]}] += one[2]
	}
	return err
}

// tally is what was counted in a second. Its fields are those of a line of standard output.
type tally struct {
	Second int     `json:"second"`
	Length float64 `json:"length_s"`
	Due    int     `json:"due"`
	Sent   int     `json:"sent"`
	// SentIn is Sent by slices of the second.
	SentIn        [sliceCount]int `json:"sent_in_10ms"`
	Ok            int             `json:"ok"`
	HTTPErrors    int             `json:"http_errors"`
	Statuses      codes           `json:"statuses"`
	Unexpected    misses          `json:"unexpected"`
	SocketErrors  map[string]int  `json:"socket_errors"`
	Timeouts      int             `json:"timeouts"`
	ConnectFailed map[string]int  `json:"connect_failed"`
	// Reopened are connections that ended after they had been of use, and were opened again.
	Reopened int `json:"reopened"`
	// Levels at its end.
	Unfinished  int `json:"unfinished"`
	Waiting     int `json:"waiting"`
	Connections int `json:"connections"`
	// Untried are connections that it had not tried to open yet.
	Untried int `json:"untried"`
	// Oldest is for how long a request had been in flight then, at most.
	Oldest int64 `json:"oldest_us"`

	// Run is how long the threads of this process ran on a CPU, and Queue how long they were ready and waited for one, until
	// the second was told. Nil if that is not known.
	Run   *int64 `json:"run_us,omitempty"`
	Queue *int64 `json:"runq_us,omitempty"`

	// Raw and Corrected are of answers without an error, Failed of the others, from when they were sent.
	Raw       histogram  `json:"raw"`
	Corrected *histogram `json:"corrected"`
	Failed    histogram  `json:"failed"`
	Late      histogram  `json:"late"`
}

func newTally(open bool) *tally {
	t := &tally{Unexpected: misses{}, SocketErrors: map[string]int{}, ConnectFailed: map[string]int{}}
	if open {
		t.Corrected = &histogram{}
	}
	return t
}

// clear makes it as new.
func (t *tally) clear() {
	corrected, unexpected, socketErrors, connectFailed := t.Corrected, t.Unexpected, t.SocketErrors, t.ConnectFailed
	clear(unexpected)
	clear(socketErrors)
	clear(connectFailed)
	*t = tally{Corrected: corrected, Unexpected: unexpected, SocketErrors: socketErrors, ConnectFailed: connectFailed}
	if corrected != nil {
		*corrected = histogram{}
	}
}

// answered counts an answer to a request, from when it was sent and from when it was due. One that is not as expected is
// an error: a quick refusal is no quick answer.
func (t *tally) answered(r *request, a *answer, sinceSent, sinceDue time.Duration) {
	t.Statuses[a.status]++
	if !r.expect.met(a) {
		if r.expect != nil {
			t.Unexpected[miss{r.number, a.status}]++
		}
		t.HTTPErrors++
		t.Failed.add(sinceSent)
		return
	}
	t.Ok++
	t.Raw.add(sinceSent)
	if t.Corrected != nil {
		t.Corrected.add(sinceDue)
	}
}

// merge adds what another loop counted in the same second.
func (t *tally) merge(other *tally) {
	t.add(other)
	t.Raw.merge(&other.Raw)
	t.Failed.merge(&other.Failed)
	t.Late.merge(&other.Late)
	if t.Corrected != nil {
		t.Corrected.merge(other.Corrected)
	}
	for i, count := range other.SentIn {
		t.SentIn[i] += count
	}
	for status, count := range other.Statuses {
		t.Statuses[status] += count
	}
	for one, count := range other.Unexpected {
		t.Unexpected[one] += count
	}
	t.Unfinished += other.Unfinished
	t.Waiting += other.Waiting
	t.Connections += other.Connections
	t.Untried += other.Untried
	t.Oldest = max(t.Oldest, other.Oldest)
	t.Run, t.Queue = plus(t.Run, other.Run), plus(t.Queue, other.Queue)
}

// plus is nil unless both are known.
func plus(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	sum := *a + *b
	return &sum
}

// follow adds the second that comes next.
func (t *tally) follow(next *tally) {
	t.add(next)
	t.Length += next.Length
	t.Unfinished = next.Unfinished
}

// add adds the counts of a total.
func (t *tally) add(other *tally) {
	t.Due += other.Due
	t.Sent += other.Sent
	t.Ok += other.Ok
	t.HTTPErrors += other.HTTPErrors
	t.Timeouts += other.Timeouts
	t.Reopened += other.Reopened
	for cause, count := range other.SocketErrors {
		t.SocketErrors[cause] += count
	}
	for cause, count := range other.ConnectFailed {
		t.ConnectFailed[cause] += count
	}
}
