// What an answer has to be: its status, and a text that its body has to have.
package main

import (
	"bytes"
	"fmt"
	"slices"
)

const (
	// mostSought is the longest text that is looked for, in bytes.
	mostSought = 1000
	// failure is the first status that is an error where no other is expected.
	failure = 400
)

// expect is what the answers to a request have to be. nil is that nobody said. It is only read.
type expect struct {
	// statuses are those that are right; none: all below failure.
	statuses []int
	// text has to be in the body, where there is one.
	text []byte
	// back says of each length how much of the text's beginning also ends so much of it, and is not all of that.
	back []int
}

// expectation checks what was hoped of the answers to a request, and makes it ready.
func expectation(of *hoped, headless bool) (*expect, error) {
	if of == nil {
		return nil, nil
	}
	if of.Status == nil && of.Body == nil {
		return nil, wrong{"requests.expect", "an empty one"}
	}
	if of.Status != nil && len(of.Status) == 0 {
		return nil, wrong{"requests.expect.status", "an empty list"}
	}
	for _, status := range of.Status {
		if status < 200 || status > 599 {
			return nil, wrong{"requests.expect.status", fmt.Sprint(status)}
		}
	}
	e := &expect{statuses: of.Status}
	if of.Body == nil {
		return e, nil
	}
	switch length := len(*of.Body); {
	case length == 0 || length > mostSought:
		return nil, wrong{"requests.expect.body_contains", fmt.Sprintf("%d bytes", length)}
	case headless:
		return nil, wrong{"requests.expect.body_contains", "one for HEAD"}
	}
	e.text = []byte(*of.Body)
	e.back = make([]int, len(e.text)+1)
	for length := 2; length <= len(e.text); length++ {
		e.back[length] = e.seek(e.back[length-1], e.text[length-1:length])
	}
	return e, nil
}

// seek goes on looking for the text in the next part of a body, of which so much of the text was found at the end of what came
// before. It returns how much of it is found at the end of this part, or all of it once it was found. It allocates nothing. (D. E. Knuth,
// J. H. Morris, V. R. Pratt, SIAM Journal on Computing 6(2), 1977.)
func (e *expect) seek(found int, part []byte) int {
	if e == nil {
		return 0
	}
	for len(part) > 0 && found < len(e.text) {
		switch {
		case part[0] == e.text[found]:
			found++
			part = part[1:]
		case found > 0:
			found = e.back[found]
		default:
			// Where it may begin.
			at := bytes.IndexByte(part, e.text[0])
			if at < 0 {
				return 0
			}
			part = part[at:]
		}
	}
	return found
}

// met is whether an answer is as it has to be.
func (e *expect) met(a *answer) bool {
	if e == nil || len(e.statuses) == 0 {
		if a.status >= failure {
			return false
		}
	} else if !slices.Contains(e.statuses, a.status) {
		return false
	}
	return e == nil || a.found == len(e.text)
}
