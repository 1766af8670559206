package service

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Delay is what every request waits, and the body that says so. It is safe for use by many
// goroutines; a change holds for requests that arrive after it.
type Delay struct {
	current atomic.Pointer[answer]
}

// answer is made once per setting, not once per request.
type answer struct {
	delay time.Duration
	body  []byte
}

// NewDelay starts with the given delay.
func NewDelay(delay time.Duration) *Delay {
	d := &Delay{}
	d.Set(delay)
	return d
}

// Set changes the delay.
func (d *Delay) Set(delay time.Duration) {
	d.current.Store(&answer{
		delay: delay,
		body:  fmt.Appendf(nil, `{"service":"downstream","delay_ms":%d}`, delay.Milliseconds()),
	})
}

// Get is the delay in force.
func (d *Delay) Get() time.Duration { return d.current.Load().delay }
