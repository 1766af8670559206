package service

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Delay is what every request waits, and the answer that says so. It is safe for use by many
// goroutines; a change holds for requests that arrive after it.
type Delay struct {
	current atomic.Pointer[setting]
}

// setting is made once per change, not once per request.
type setting struct {
	delay  time.Duration
	body   string
	answer []byte
}

// NewDelay starts with the given delay.
func NewDelay(delay time.Duration) *Delay {
	d := &Delay{}
	d.Set(delay)
	return d
}

// Set changes the delay.
func (d *Delay) Set(delay time.Duration) {
	body := fmt.Sprintf(`{"service":"downstream","delay_ms":%d}`, delay.Milliseconds())
	d.current.Store(&setting{delay, body, rendered(200, "application/json", "", body)})
}

// Get is the delay in force.
func (d *Delay) Get() time.Duration { return d.current.Load().delay }
