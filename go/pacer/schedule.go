// When each request of an open load is due, and which request it is.
package main

import (
	"math"
	"math/rand/v2"
	"sort"
	"time"
)

// never is a time that does not come.
const never = time.Duration(math.MaxInt64)

// schedule tells the times at which requests are due, in order. The requests are numbered from 0 over the
// whole load; a loop has every n-th of them. Not safe for use by many goroutines.
type schedule struct {
	parts []part
	// arrived is the request that comes next, in requests that are to have come before it: its number for
	// even arrivals, a sum of exponential times at the rate 1 for Poisson's.
	arrived float64
	every   int
	random  *rand.Rand
	choice  *choice
}

// part is a time in which the rate is constant or changes evenly.
type part struct {
	// start and length in seconds; before is how many requests are to have come by the start.
	start, length, before float64
	// rate at its start, and by how much it grows in a second.
	rate, growth float64
}

// newSchedule is the schedule of the loop with the number first, of so many loops.
func newSchedule(l *load, first, loops int) *schedule {
	s := &schedule{parts: parts(l), every: loops, choice: newChoice(*l.words.Seed, 2, l.requests)}
	s.choice.pass(first)
	if *l.words.Arrivals == poisson {
		s.random = rand.New(rand.NewPCG(*l.words.Seed, 1))
		s.pass(first + 1)
	} else {
		s.pass(first)
	}
	return s
}

// parts is the rate over time. While the connections open, at an even pace, it grows with their number: else
// what was due meanwhile would wait for them, and be answered until long after the warm-up.
func parts(l *load) []part {
	var list []part
	add := func(length, rate, growth float64) {
		next := part{length: length, rate: rate, growth: growth}
		if len(list) > 0 {
			last := list[len(list)-1]
			next.start, next.before = last.start+last.length, last.before+last.count()
		}
		list = append(list, next)
	}
	begin := func(rate float64) float64 {
		opening := 0.0
		if pace := *l.words.ConnectPerS; pace > 0 {
			opening = min(float64(*l.words.Connections)/pace, *l.words.Warmup)
		}
		if opening > 0 {
			add(opening, 0, rate/opening)
		}
		return opening
	}
	if l.words.Profile == nil {
		begin(*l.words.Rate)
		add(math.Inf(1), *l.words.Rate, 0)
		return list
	}
	last := *l.words.Profile[0].From
	add(*l.words.Warmup-begin(last), last, 0)
	for _, one := range l.words.Profile {
		add(*one.For, *one.From, (*one.To-*one.From) / *one.For)
		last = *one.To
	}
	add(math.Inf(1), last, 0)
	return list
}

// count is how many requests come in the part.
func (p part) count() float64 {
	if math.IsInf(p.length, 1) {
		return p.length
	}
	return p.length * (p.rate + p.growth*p.length/2)
}

// pass goes on by so many requests.
func (s *schedule) pass(requests int) {
	if s.random == nil {
		s.arrived += float64(requests)
		return
	}
	for range requests {
		s.arrived += s.random.ExpFloat64()
	}
}

// next is when the next request is due, and which one it is; never after the last.
func (s *schedule) next() (time.Duration, *request) {
	for len(s.parts) > 1 && s.arrived >= s.parts[1].before {
		s.parts = s.parts[1:]
	}
	at := s.parts[0].at(s.arrived)
	s.pass(s.every)
	chosen := s.choice.next()
	s.choice.pass(s.every - 1)
	return at, chosen
}

// at is when so many requests have come. The part's rate is integrated to rate·t + growth·t²/2, and this
// is solved for t in the form that loses no digits.
func (p part) at(arrived float64) time.Duration {
	more := arrived - p.before
	switch {
	case p.rate == 0 && p.growth == 0:
		return never
	case more == 0:
		return seconds(p.start)
	}
	// Rounding may leave less than nothing below the root.
	t := 2 * more / (p.rate + math.Sqrt(max(0, p.rate*p.rate+2*p.growth*more)))
	if p.start+t > 1e9 {
		return never
	}
	return seconds(p.start + t)
}

// choice draws requests by their weights.
type choice struct {
	requests []*request
	// sums are the weights up to and with each request.
	sums   []float64
	random *rand.Rand
}

func newChoice(seed, stream uint64, requests []*request) *choice {
	c := &choice{requests: requests, random: rand.New(rand.NewPCG(seed, stream))}
	sum := 0.0
	for _, one := range requests {
		sum += one.weight
		c.sums = append(c.sums, sum)
	}
	return c
}

func (c *choice) next() *request {
	if len(c.requests) == 1 {
		return c.requests[0]
	}
	drawn := c.random.Float64() * c.sums[len(c.sums)-1]
	return c.requests[min(sort.SearchFloat64s(c.sums, drawn), len(c.requests)-1)]
}

func (c *choice) pass(requests int) {
	for range requests {
		c.next()
	}
}
