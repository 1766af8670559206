// Tests of when requests are due.
package main

import (
	"math"
	"testing"
	"time"
)

// times are when the requests are due that come before an end.
func times(l *load, first, loops int, end time.Duration) []time.Duration {
	s := newSchedule(l, first, loops)
	var list []time.Duration
	for at, _ := s.next(); at < end; at, _ = s.next() {
		list = append(list, at)
	}
	return list
}

func TestAConstantRateIsEven(t *testing.T) {
	list := times(read(t, map[string]any{"rate": 3000}), 0, 1, 24*time.Hour/10)
	if len(list) != 3000*8640 {
		t.Fatal(len(list))
	}
	for i, at := range list {
		if exact := seconds(float64(i) / 3000); at != exact {
			t.Fatal(i, at, exact)
		}
	}
}

// A profile starts after the warm-up, in which its first rate holds. By any time as many requests came as the
// integral of the rate, whatever the pieces; after the last one its last rate holds.
func TestAProfileIsFollowed(t *testing.T) {
	l := read(t, map[string]any{"rate": nil, "warmup_s": 2, "window_s": 50, "profile": []any{
		map[string]any{"for_s": 4, "from": 100, "to": 100}, map[string]any{"for_s": 10, "from": 100, "to": 300},
		map[string]any{"for_s": 5, "from": 0, "to": 0}, map[string]any{"for_s": 2, "from": 0, "to": 50},
		map[string]any{"for_s": 1, "from": 50, "to": 0}, map[string]any{"for_s": 1, "from": 2000, "to": 40},
	}})
	list := times(l, 0, 1, 52*time.Second)
	for at, want := range map[float64]float64{
		1: 100, 2: 200, 6: 600, 11: 600 + 5*(100+200)/2, 16: 2600, 20.9: 2600, 22: 2600 + 12.5, 23: 2650, 24: 2675, 24.5: 2675 + .5*(2000+1020)/2, 25: 3695, 52: 3695 + 27*40,
	} {
		came := 0
		for came < len(list) && list[came] < seconds(at) {
			came++
		}
		if math.Abs(float64(came)-want) > 1 {
			t.Errorf("%d requests before %v s, not %v", came, at, want)
		}
	}
	for i := range list[1:] {
		if list[i+1] < list[i] {
			t.Fatal("not in order", i)
		}
	}
	silent := read(t, map[string]any{"rate": nil, "profile": []any{map[string]any{"for_s": 1, "from": 10, "to": 0}}})
	if came := len(times(silent, 0, 1, time.Hour)); came != 10 {
		t.Error("after an end at rate 0:", came)
	}
}

// While 100 connections open in 2 s, the rate grows with them; a profile's first rate as well.
func TestTheRateGrowsWithTheConnectionsThatOpen(t *testing.T) {
	opens := map[string]any{"connections": 100, "connect_per_s": 50, "warmup_s": 5, "rate": 400}
	profile := map[string]any{"connections": 100, "connect_per_s": 50, "warmup_s": 5, "rate": nil, "profile": []any{map[string]any{"for_s": 4, "from": 400, "to": 400}}}
	for _, words := range []map[string]any{opens, profile} {
		list := times(read(t, words), 0, 1, 9*time.Second)
		for at, want := range map[float64]int{1: 100, 2: 400, 5: 1600, 9: 3200} {
			came := 0
			for came < len(list) && list[came] < seconds(at) {
				came++
			}
			if came < want-1 || came > want+1 {
				t.Errorf("%d requests before %v s, not %d", came, at, want)
			}
		}
	}
	// It is whole by the end of the warm-up, also where not all are open by then.
	if list := times(read(t, map[string]any{"connections": 100, "connect_per_s": 10, "warmup_s": 2, "rate": 400}), 0, 1, 3*time.Second); len(list) != 800 {
		t.Error(len(list))
	}
}

// Of Poisson arrivals the number in a second varies as much as its mean, and the seed decides them.
func TestPoissonArrivals(t *testing.T) {
	l := read(t, map[string]any{"arrivals": "poisson", "rate": 50, "seed": 7})
	list := times(l, 0, 1, 2000*time.Second)
	counts := make([]float64, 2000)
	for _, at := range list {
		counts[at/time.Second]++
	}
	mean, variance := 0.0, 0.0
	for _, count := range counts {
		mean += count / 2000
	}
	for _, count := range counts {
		variance += (count - mean) * (count - mean) / 2000
	}
	if math.Abs(mean-50) > 1 || math.Abs(variance-50) > 6 {
		t.Error(mean, variance)
	}
	again := times(l, 0, 1, 2000*time.Second)
	other := times(read(t, map[string]any{"arrivals": "poisson", "rate": 50, "seed": 8}), 0, 1, 2000*time.Second)
	if len(again) != len(list) || again[9] != list[9] || other[9] == list[9] {
		t.Error("the seed does not decide")
	}
}

// Several loops have the requests of one, each its own ones.
func TestLoopsShareASchedule(t *testing.T) {
	many := []any{wish(map[string]any{"weight": 3}), wish(map[string]any{"method": "HEAD", "weight": 1})}
	for _, arrivals := range []string{constant, poisson} {
		l := read(t, map[string]any{"arrivals": arrivals, "requests": many})
		whole := newSchedule(l, 0, 1)
		parts := []*schedule{newSchedule(l, 0, 3), newSchedule(l, 1, 3), newSchedule(l, 2, 3)}
		first := 0
		for i := range 6000 {
			at, request := whole.next()
			partAt, partRequest := parts[i%3].next()
			if (at-partAt).Abs() > time.Microsecond || request != partRequest {
				t.Fatal(arrivals, i, at, partAt)
			}
			if request == l.requests[0] {
				first++
			}
		}
		if first < 4350 || first > 4650 {
			t.Error("a weight of 3 in 4 was chosen", first, "times of 6,000")
		}
	}
}
