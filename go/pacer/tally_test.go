// Tests of what is counted in a second.
package main

import (
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The buckets are those of HdrHistogram's own library.
func TestBucketsAreHdrHistograms(t *testing.T) {
	own := hdrhistogram.New(1, mostUs, 3)
	for _, us := range []int64{0, 1, 2, 999, 1023, 1024, 2047, 2048, 2049, 4095, 4096, 200_000, 200_127, 1 << 20, 1<<20 - 1, 3_000_000, 1<<31 + 12345, mostUs - 1, mostUs} {
		own.Reset()
		if err := own.RecordValue(us); err != nil {
			t.Fatal(err)
		}
		if upper(bucket(uint64(us))) != own.Max() {
			t.Errorf("%d: %d, not %d", us, upper(bucket(uint64(us))), own.Max())
		}
	}
	if last := bucket(mostUs); last != len(histogram{}.counts)-1 || bucket(1<<60) != last {
		t.Error(last, len(histogram{}.counts))
	}
}

func TestAHistogramTellsWhatItCounted(t *testing.T) {
	var h, other histogram
	h.add(1500 * time.Nanosecond)
	h.add(-time.Second)
	other.add(3 * time.Millisecond)
	other.add(3*time.Millisecond + 900*time.Nanosecond)
	h.merge(&other)
	text, err := h.MarshalJSON()
	if want := `{"sum_us":6002,"max_us":3000,"buckets":[[0,1],[1,1],[3001,2]]}`; err != nil || string(text) != want {
		t.Errorf("%s, not %s", text, want)
	}
	empty, _ := (&histogram{}).MarshalJSON()
	if string(empty) != `{"sum_us":0,"max_us":0,"buckets":[]}` {
		t.Errorf("%s", empty)
	}
	if some := testing.AllocsPerRun(100, func() { h.add(time.Second) }); some != 0 {
		t.Error(some, "allocations")
	}
}

func TestErrorsAreFrom400On(t *testing.T) {
	var one tally
	for _, status := range []int{200, 302, 399, 400, 599} {
		one.answered(&request{}, &answer{status: status}, time.Millisecond, time.Millisecond)
	}
	if one.Ok != 3 || one.HTTPErrors != 2 || one.Statuses[400] != 1 {
		t.Error(one.Ok, one.HTTPErrors)
	}
}

// Of machines of which one does not tell, nobody knows the sum.
func TestTimesOfThreadsAreAddedUpWhereAllAreKnown(t *testing.T) {
	us := func(run, queue int64) *tally { return &tally{Run: &run, Queue: &queue} }
	sum := us(100, 20)
	sum.merge(us(30, 4))
	if sum.Run == nil || sum.Queue == nil || *sum.Run != 130 || *sum.Queue != 24 {
		t.Error(sum.Run, sum.Queue)
	}
	if sum.merge(&tally{}); sum.Run != nil || sum.Queue != nil {
		t.Error(*sum.Run, *sum.Queue)
	}
}

// What two loops count in a second is added, and so are the levels at its end.
func TestLoopsAreAddedUp(t *testing.T) {
	one, other := newTally(false), newTally(false)
	one.Connections, one.Untried, one.Reopened, one.Oldest = 3, 1, 4, 7
	other.Connections, other.Untried, other.Reopened, other.Oldest = 2, 5, 6, 9
	one.SentIn[3], other.SentIn[3], other.SentIn[99] = 4, 5, 6
	if one.merge(other); one.SentIn[3] != 9 || one.SentIn[99] != 6 {
		t.Error(one.SentIn)
	}
	if one.Connections != 5 || one.Untried != 6 || one.Reopened != 10 || one.Oldest != 9 {
		t.Errorf("%+v", []int{one.Connections, one.Untried, one.Reopened, int(one.Oldest)})
	}
}
