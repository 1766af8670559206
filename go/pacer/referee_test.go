// The referee: a server with scripted latencies that logs its own truth, in a time of its own. Nothing in these
// tests depends on the machine: time stands still while the loop works, and passes where it would sleep.
package main

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long a test waits for what has to happen.
const patience = 100 * time.Second

// refusal is how long an answer takes that is an error; no other one takes just as long.
const refusal = 137 * time.Microsecond

// referee serves one loop.
type referee struct {
	t    *testing.T
	loop *loop
	now  time.Duration
	// work is what the loop needs for each look at its clock.
	work time.Duration
	// latency is the script: how long the answer takes to a request that comes at a time, as the n-th; never is
	// no answer.
	latency func(n int, at time.Duration) time.Duration
	asked   chan net.Conn
	// got is how many requests came, answered how many got an answer that was due by now.
	got, answered int
	scripted      []scripted
	// truth is the log: when each request came and when its answer was written.
	truth []scripted
	lines []*tally
	ended chan *tally
}

// scripted is an answer that is to be written.
type scripted struct {
	to            net.Conn
	asked, writes time.Duration
}

// against runs a load against a script to its end.
func against(t *testing.T, change map[string]any, latency func(int, time.Duration) time.Duration) *referee {
	return working(t, change, 0, latency)
}

func working(t *testing.T, change map[string]any, work time.Duration, latency func(int, time.Duration) time.Duration) *referee {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	r := &referee{t: t, work: work, latency: latency, asked: make(chan net.Conn, 1<<20), ended: make(chan *tally, 1000)}
	go r.serve(listener)
	change["requests"] = []any{wish(map[string]any{"url": "http://" + listener.Addr().String()})}
	l := read(t, change)
	if err := l.hosts[0].find(); err != nil {
		t.Fatal(err)
	}
	var end atomic.Int64
	end.Store(int64(l.run))
	r.loop, err = newLoop(l, 0, 1, r.clock, &end, r.ended, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.loop.wait = r.wait
	t.Cleanup(r.loop.shut)
	for r.loop.round() {
	}
	for line := range r.ended {
		r.lines = append(r.lines, line)
	}
	return r
}

// serve reads requests. What they get is decided where the loop waits.
func (r *referee) serve(listener net.Listener) {
	for {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			reader := bufio.NewReader(c)
			for {
				request, err := http.ReadRequest(reader)
				if err != nil {
					return
				}
				_ = request.Body.Close()
				r.asked <- c
			}
		}()
	}
}

func (r *referee) clock() time.Duration {
	r.now += r.work
	return r.now
}

// wait is the loop's: instead of sleeping, time passes and answers are written.
func (r *referee) wait(left time.Duration) []unix.EpollEvent {
	for until := r.now + left; ; {
		for len(r.ended) > 0 {
			r.lines = append(r.lines, <-r.ended)
		}
		sent, ok := r.loop.now.Sent, r.loop.now.Ok+r.loop.now.HTTPErrors
		for _, line := range r.lines {
			sent, ok = sent+line.Sent, ok+line.Ok+line.HTTPErrors
		}
		r.take(sent)
		// What has to come is waited for.
		real := time.Duration(0)
		if r.loop.opening.count > 0 || r.answered > ok {
			real = patience
		}
		if events := r.loop.poll.Wait(real); len(events) > 0 || r.now >= until {
			return events
		}
		r.now = until
		for _, one := range r.scripted {
			r.now = min(r.now, one.writes)
		}
	}
}

// take scripts the answers to what was sent, and writes those that are due.
func (r *referee) take(sent int) {
	for ; r.got < sent; r.got++ {
		select {
		case c := <-r.asked:
			if takes := r.latency(r.got, r.now); takes != never {
				r.scripted = append(r.scripted, scripted{c, r.now, r.now + takes})
			}
		case <-time.After(patience):
			r.t.Fatal("a request that was sent did not come")
		}
	}
	r.scripted = slices.DeleteFunc(r.scripted, func(one scripted) bool {
		if one.writes > r.now {
			return false
		}
		status := "200 OK"
		if one.writes-one.asked == refusal {
			status = "429 Too Many Requests"
		}
		if _, err := fmt.Fprint(one.to, "HTTP/1.1 "+status+"\r\nContent-Length: 2\r\n\r\nok"); err != nil {
			r.t.Fatal(err)
		}
		r.answered++
		r.truth = append(r.truth, one)
		return true
	})
}

// shut closes what the loop opened.
func (o *loop) shut() {
	for i := range o.connections {
		if c := &o.connections[i]; c.fd >= 0 {
			_ = unix.Close(c.fd)
		}
	}
	o.poll.Close()
}

// merged is what all lines counted in one of their histograms.
func (r *referee) merged(of func(*tally) *histogram) *histogram {
	var sum histogram
	for _, line := range r.lines {
		sum.merge(of(line))
	}
	return &sum
}

func raw(t *tally) *histogram       { return &t.Raw }
func failed(t *tally) *histogram    { return &t.Failed }
func corrected(t *tally) *histogram { return t.Corrected }
func late(t *tally) *histogram      { return &t.Late }

// at is a percentile of a histogram: the upper end of its bucket.
func (h *histogram) at(percentile float64) time.Duration {
	rank, seen, found := int(math.Ceil(percentile*float64(h.count))), 0, int64(0)
	h.each(func(upperUs int64, count uint32) {
		if seen < rank {
			found = upperUs
		}
		seen += int(count)
	})
	return time.Duration(found) * time.Microsecond
}

// agrees fails unless a histogram is that of these times.
func agrees(t *testing.T, h *histogram, truth []time.Duration) {
	t.Helper()
	slices.Sort(truth)
	if h.count != len(truth) {
		t.Fatalf("%d answers, and %d in truth", h.count, len(truth))
	}
	for _, percentile := range []float64{.001, .25, .5, .75, .9, .95, .99, .999, 1} {
		exact := truth[int(math.Ceil(percentile*float64(len(truth))))-1]
		if at := h.at(percentile); at < exact-time.Microsecond || at > exact+exact/1000+time.Microsecond {
			t.Errorf("p%v is %v, and %v in truth", 100*percentile, at, exact)
		}
	}
}

// accounted fails unless every request is in one class, and the seconds are whole.
func (r *referee) accounted() {
	r.t.Helper()
	came, ended := 0, 0
	for i, line := range r.lines {
		if r.loop.load.open {
			came += line.Due
		} else {
			came += line.Sent
		}
		ended += line.Ok + line.HTTPErrors + line.Timeouts
		for _, count := range line.SocketErrors {
			ended += count
		}
		if line.Second != i || came != ended+line.Unfinished || line.Waiting > line.Unfinished {
			r.t.Errorf("second %d: %d came, %d ended, %d unfinished", i, came, ended, line.Unfinished)
		}
		if i < len(r.lines)-1 && line.Length != 1 {
			r.t.Error("second", i, "lasts", line.Length)
		}
		if line.Raw.count != line.Ok || line.Failed.count != line.HTTPErrors || line.Late.count != line.Sent {
			r.t.Error("second", i, "has other histograms than counts")
		}
	}
	if last := r.lines[len(r.lines)-1]; float64(last.Second)+last.Length != r.loop.load.run.Seconds() {
		r.t.Error("the run lasts", float64(last.Second)+last.Length)
	}
}

// latencies are of a service: 1 ms to some 100, one in a hundred ten times that.
func latencies() func(int, time.Duration) time.Duration {
	random := rand.New(rand.NewPCG(3, 4))
	return func(int, time.Duration) time.Duration {
		takes := time.Duration((1 + 20*random.ExpFloat64()) * 1e6)
		if random.IntN(100) == 0 {
			takes *= 10
		}
		return takes
	}
}

func TestTheRefereeAgreesOnAnOpenLoad(t *testing.T) {
	for _, arrivals := range []string{constant, poisson} {
		r := against(t, map[string]any{"arrivals": arrivals, "connections": 400, "rate": 1000, "warmup_s": 1, "window_s": 3.25}, latencies())
		r.accounted()
		var truth []time.Duration
		for _, one := range r.truth {
			truth = append(truth, one.writes-one.asked)
		}
		agrees(t, r.merged(raw), truth)
		// Nothing waits where there is always a connection.
		agrees(t, r.merged(corrected), truth)
		if r.merged(late).max != 0 {
			t.Error("late by", r.merged(late).max)
		}
		// Each was sent when it was due.
		due := times(r.loop.load, 0, 1, r.loop.load.run)
		if arrivals == constant && len(due) != 4250 {
			t.Error(len(due), "were due")
		}
		if r.got != len(due) {
			t.Errorf("%d of %d were sent", r.got, len(due))
		}
		for _, one := range r.truth {
			if _, there := slices.BinarySearch(due, one.asked); !there {
				t.Fatal("sent at", one.asked, "when none was due")
			}
		}
	}
}

// Of three answers two are refused at once. Their latencies are no part of the others'.
func TestTheRefereeTellsAnswersAndErrorsApart(t *testing.T) {
	for _, arrivals := range []string{constant, closed} {
		slow := latencies()
		change := map[string]any{"arrivals": arrivals, "connections": 400, "rate": 1000}
		if arrivals == closed {
			change = map[string]any{"arrivals": closed, "rate": nil, "connections": 5, "connect_per_s": 100}
		}
		r := against(t, change, func(n int, at time.Duration) time.Duration {
			if n%3 > 0 {
				return refusal
			}
			return slow(n, at)
		})
		r.accounted()
		var truth, refused []time.Duration
		for _, one := range r.truth {
			if took := one.writes - one.asked; took == refusal {
				refused = append(refused, took)
			} else {
				truth = append(truth, took)
			}
		}
		agrees(t, r.merged(raw), truth)
		agrees(t, r.merged(failed), refused)
		if arrivals == constant {
			agrees(t, r.merged(corrected), truth)
		}
	}
}

func TestTheRefereeAgreesOnAClosedLoad(t *testing.T) {
	r := against(t, map[string]any{"arrivals": closed, "rate": nil, "connections": 50, "connect_per_s": 100}, latencies())
	r.accounted()
	var truth []time.Duration
	for _, one := range r.truth {
		truth = append(truth, one.writes-one.asked)
	}
	agrees(t, r.merged(raw), truth)
	if r.merged(late).max != 0 || r.lines[0].Corrected != nil || r.lines[0].Due != 0 {
		t.Error("late by", r.merged(late).max)
	}
	// All are in use from 0.5 s on, as they open at 100 a second.
	if r.lines[0].Connections != 50 || r.lines[0].Unfinished != 50 {
		t.Errorf("%+v", r.lines[0])
	}
}

// Connections are opened evenly, and a closed load sends on each as it opens.
func TestConnectionsOpenAtTheirPace(t *testing.T) {
	r := against(t, map[string]any{"arrivals": closed, "rate": nil, "connections": 40, "connect_per_s": 25},
		func(int, time.Duration) time.Duration { return 100 * time.Second })
	r.accounted()
	if r.lines[0].Sent != 25 || r.lines[0].Connections != 25 || r.lines[1].Sent != 15 || r.lines[1].Unfinished != 40 {
		t.Errorf("%d and %d", r.lines[0].Sent, r.lines[1].Sent)
	}
	if r.lines[0].Untried != 15 || r.lines[1].Untried != 0 {
		t.Errorf("%d and %d are untried", r.lines[0].Untried, r.lines[1].Untried)
	}
}

// Where requests are lost, what is due does not wait for connections that pacer opens one after the other: 25 of these 10 are
// lost in a second, and the pace of the start is 10 a second.
func TestLostConnectionsAreOpenedAtOnce(t *testing.T) {
	r := against(t, map[string]any{"connections": 10, "connect_per_s": 10, "rate": 500, "timeout_s": 0.1, "warmup_s": 1, "window_s": 3},
		func(n int, _ time.Duration) time.Duration {
			if n%20 == 19 {
				return never
			}
			return time.Millisecond
		})
	r.accounted()
	for _, line := range r.lines[1:] {
		if line.Waiting > 0 || line.Timeouts < 20 || line.Reopened != line.Timeouts {
			t.Errorf("%d wait, %d timed out, %d were opened again", line.Waiting, line.Timeouts, line.Reopened)
		}
	}
	if waited := r.merged(corrected).max; waited > 2*time.Millisecond {
		t.Error("an answer took", waited)
	}
}

// stall is a script: nothing is answered for 3 s from the third on, then all that waits at once.
func stall(takes time.Duration) func(int, time.Duration) time.Duration {
	return func(_ int, at time.Duration) time.Duration {
		if end := at + takes; end >= 3*time.Second && end < 6*time.Second {
			return 6*time.Second - at
		}
		return takes
	}
}

// A service that stops for 3 s is seen as theory says. Of an open load at 1,000/s each request that was due
// meanwhile waits for its end: 1 ms more or less each, so the percentiles are those of an even distribution, and
// the 10 connections do not hide it. What counts from the sending shows 10 slow requests.
func TestAStallIsSeenAsTheorySays(t *testing.T) {
	r := against(t, map[string]any{"connections": 10, "rate": 1000, "warmup_s": 0, "window_s": 10}, stall(2*time.Millisecond))
	r.accounted()
	seen, hidden := r.merged(corrected), r.merged(raw)
	slow := 0
	hidden.each(func(upperUs int64, count uint32) {
		if upperUs > 100_000 {
			slow += int(count)
		}
	})
	if slow != 10 || hidden.at(.99) > 3*time.Millisecond {
		t.Error(slow, "slow ones,", hidden.at(.99))
	}
	// Due at 3 s − 2 ms + x, answered at 6 s, or up to 0.75 s later: 10 connections answer 5,000/s, of which
	// 1,000 are new ones. So the 3,000 that waited are done after 3,000 ÷ 4,000 s, x then waited
	// 3 s − x + x ÷ 5; and those of the 0.75 s after it what is left of the queue.
	var truth []time.Duration
	for i := range 9998 {
		due := float64(i) / 1000
		took := .002
		if due > 2.998 && due < 6.75 {
			took = max(took, 3-(due-3)*4/5)
		}
		truth = append(truth, seconds(took))
	}
	slices.Sort(truth)
	for _, percentile := range []float64{.5, .65, .75, .9, .95, .99, 1} {
		exact := truth[int(percentile*9998)-1]
		if at := seen.at(percentile); at < exact-10*time.Millisecond || at > exact+10*time.Millisecond {
			t.Errorf("p%v is %v, and %v in theory", 100*percentile, at, exact)
		}
	}
	// All that are due wait in the second 4, but for the 10 that were sent.
	if line := r.lines[4]; line.Due != 1000 || line.Sent != 0 || line.Ok != 0 || line.Waiting != line.Unfinished-10 || line.Unfinished < 1990 || line.Unfinished > 2010 {
		t.Errorf("%d due, %d sent, %d waiting, %d unfinished", line.Due, line.Sent, line.Waiting, line.Unfinished)
	}
}

// Requests that wait for a connection are sent in their order, and that they wait is no lateness of pacer's.
func TestRequestsWaitInOrder(t *testing.T) {
	r := against(t, map[string]any{"connections": 1, "rate": 100}, func(int, time.Duration) time.Duration { return 40 * time.Millisecond })
	r.accounted()
	if late := r.merged(late).max; late != 0 {
		t.Error("late by", late)
	}
	// The n-th is due at n·10 ms and answered at (n + 1)·40 ms.
	var waited []time.Duration
	for n := range r.merged(raw).count {
		waited = append(waited, time.Duration(n+1)*40*time.Millisecond-time.Duration(n)*10*time.Millisecond)
	}
	if len(waited) != 49 {
		t.Error(len(waited), "were answered in 2 s")
	}
	agrees(t, r.merged(corrected), waited)
	agrees(t, r.merged(raw), slices.Repeat([]time.Duration{40 * time.Millisecond}, 49))
}

// A request that is due takes the connection that has been free longest, so all are in use.
func TestConnectionsTakeTurns(t *testing.T) {
	r := against(t, map[string]any{"connections": 20, "rate": 100}, func(int, time.Duration) time.Duration { return time.Millisecond })
	turns := map[net.Conn]int{}
	for i, one := range r.truth {
		if before, there := turns[one.to]; there && i-before != 20 {
			t.Fatal("used again after", i-before)
		}
		turns[one.to] = i
	}
	if len(turns) != 20 {
		t.Error(len(turns), "were used")
	}
}

// What pacer itself needs is in its lateness, and not in the answer that came before.
func TestLatenessIsTold(t *testing.T) {
	r := working(t, map[string]any{"connections": 5, "rate": 500}, 3*time.Millisecond, func(int, time.Duration) time.Duration { return 0 })
	r.accounted()
	if late := r.merged(late); late.at(.5) < 3*time.Millisecond {
		t.Error("late by", late.at(.5))
	}
	for _, line := range r.lines {
		if line.Corrected.sum < line.Raw.sum {
			t.Error("more was counted from the sending than from when it was due")
		}
	}
}

// A request that is not answered in time is a timeout, after exactly that time. Its connection is another then.
func TestTimeouts(t *testing.T) {
	r := against(t, map[string]any{"connections": 4, "rate": 4, "timeout_s": 0.5, "warmup_s": 0, "window_s": 3}, func(n int, _ time.Duration) time.Duration {
		if n%2 == 0 {
			return never
		}
		return time.Millisecond
	})
	r.accounted()
	var got []int
	for _, line := range r.lines {
		got = append(got, line.Timeouts, line.Ok, line.Connections)
	}
	// Due at 0, 0.5, 1 … and timed out at 0.5, 1, 1.5 …; what ends at the end of a second is of the next one.
	if want := []int{1, 2, 4, 2, 2, 4, 2, 2, 4}; !slices.Equal(got, want) {
		t.Error(got, "not", want)
	}
}
