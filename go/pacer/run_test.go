// Tests of what a run writes.
package main

import (
	"bytes"
	"errors"
	"testing"
)

// brief is a writer that takes a number of lines, fails once, and then takes everything.
type brief struct {
	bytes.Buffer
	left int
}

var errFull = errors.New("no space left")

func (b *brief) Write(text []byte) (int, error) {
	if b.left--; b.left == -1 {
		return 0, errFull
	}
	return b.Buffer.Write(text)
}

// Else what is written would look whole.
func TestNoLineFollowsOneThatCouldNotBeWritten(t *testing.T) {
	out := &brief{left: 1}
	r := &run{out: out}
	for number := range 3 {
		r.write(number)
	}
	if out.String() != "0\n" || r.written != errFull {
		t.Errorf("%q %v", out.String(), r.written)
	}
}
