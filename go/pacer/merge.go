// Adding up what several processes told, on one machine or on several.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
)

// startsApart is by how many seconds the starts of runs may differ that are added up.
var startsApart = 0.5

// source is what one process told, or tells.
type source struct {
	name  string
	lines *json.Decoder
	head  head
	// begun is when its run began, in seconds of a clock that is the same for all sources.
	begun float64
}

// merge writes the lines of one run that did what all of these files tell. Every count, bucket and sum is added, and
// the maxima compared. Its first line has theirs. Errors are one line: of a file that is not whole, or of runs that were
// not at the same time or not equally long.
func merge(names []string, out io.Writer) error {
	sources := make([]*source, len(names))
	heads := make([]head, len(names))
	begun := math.Inf(1)
	for i, name := range names {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		one := &source{name: name, lines: json.NewDecoder(file)}
		if err := one.begin(); err != nil {
			return err
		}
		one.begun = one.head.Unix
		sources[i], heads[i], begun = one, one.head, min(begun, one.begun)
	}
	if err := alike(sources); err != nil {
		return err
	}
	err := writeLine(out, struct {
		Pacer  string  `json:"pacer"`
		Format int     `json:"format"`
		Unix   float64 `json:"unix_s"`
		Merged []head  `json:"merged"`
	}{version, format, begun, heads})
	if err == nil {
		_, err = addUp(sources, out)
	}
	return err
}

// begin reads the first line.
func (s *source) begin() error {
	var text json.RawMessage
	if err := s.next(&text); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	if err := json.Unmarshal(text, &s.head); err != nil || s.head.Format != format || s.head.Load.missing() != nil {
		return fmt.Errorf("%s: does not begin with the first line of pacer %s", s.name, version)
	}
	return nil
}

// next reads a line. One that tells of a failure is an error.
func (s *source) next(text *json.RawMessage) error {
	if err := s.lines.Decode(text); err != nil {
		return err
	}
	if !bytes.HasPrefix(*text, []byte(`{"failed"`)) {
		return nil
	}
	var told broken
	if err := json.Unmarshal(*text, &told); err != nil {
		return err
	}
	return fmt.Errorf("%s", told.Failed)
}

// alike fails unless they ran at the same time, and as long.
func alike(sources []*source) error {
	first := sources[0]
	for _, one := range sources {
		load, of := one.head.Load, first.head.Load
		if *load.Warmup != *of.Warmup || *load.Window != *of.Window || *load.Arrivals != *of.Arrivals {
			return fmt.Errorf("%s: has another warm-up, window or kind of arrivals than %s", one.name, first.name)
		}
		if apart := one.begun - first.begun; math.Abs(apart) > startsApart {
			return fmt.Errorf("%s: began %.3f s after %s; at most %v s are allowed", one.name, apart, first.name, startsApart)
		}
	}
	return nil
}

// addUp writes the seconds and the last line of all added up, and returns the sum of the seconds that all have told.
func addUp(sources []*source, out io.Writer) (*tally, error) {
	sum, cpu := newTally(false), 0.0
	for {
		var line *tally
		ends := 0
		for _, one := range sources {
			var text json.RawMessage
			if err := one.next(&text); err != nil {
				return sum, fmt.Errorf("%s: second %d: %w", one.name, sum.Second, err)
			}
			if bytes.HasPrefix(text, []byte(`{"ended"`)) {
				var end total
				if err := json.Unmarshal(text, &end); err != nil || end.Ended != "complete" {
					return sum, fmt.Errorf("%s: did not run to its end", one.name)
				}
				cpu += end.CPU
				ends++
				continue
			}
			told := newTally(false)
			switch err := json.Unmarshal(text, told); {
			case err != nil:
				return sum, fmt.Errorf("%s: second %d: %w", one.name, sum.Second, err)
			case told.Second != sum.Second || line != nil && (told.Length != line.Length || (told.Corrected == nil) != (line.Corrected == nil)):
				return sum, fmt.Errorf("%s: tells of other seconds", one.name)
			case line == nil:
				line = told
			default:
				line.merge(told)
			}
		}
		switch {
		case ends == len(sources):
			end := totalOf(sum)
			end.Ended, end.CPU = "complete", cpu
			return sum, writeLine(out, end)
		case ends > 0:
			return sum, fmt.Errorf("they did not last equally long: second %d is not told by all", sum.Second)
		}
		sum.follow(line)
		sum.Second++
		if err := writeLine(out, line); err != nil {
			return sum, err
		}
	}
}
