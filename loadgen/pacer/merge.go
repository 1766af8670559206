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
const startsApart = 0.5

// merge writes the lines of one run that did what all of these did. Every count, bucket and sum is added, and
// the maxima compared. Its first line has theirs. Errors are one line: of a file that is not whole, or of runs that were
// not at the same time or not equally long.
func merge(names []string, out io.Writer) error {
	sources := make([]*json.Decoder, len(names))
	heads := make([]head, len(names))
	begun := math.Inf(1)
	for i, name := range names {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		sources[i] = json.NewDecoder(file)
		one := &heads[i]
		if err := sources[i].Decode(one); err != nil || one.Format != format || one.Load.missing() != nil {
			return fmt.Errorf("%s: does not begin with the first line of pacer %s", name, version)
		}
		first := heads[0].Load
		if *one.Load.Warmup != *first.Warmup || *one.Load.Window != *first.Window || *one.Load.Arrivals != *first.Arrivals {
			return fmt.Errorf("%s: has another warm-up, window or kind of arrivals than %s", name, names[0])
		}
		if apart := one.Unix - heads[0].Unix; math.Abs(apart) > startsApart {
			return fmt.Errorf("%s: began %.3f s after %s; at most %v s are allowed", name, apart, names[0], startsApart)
		}
		begun = min(begun, one.Unix)
	}
	err := writeLine(out, struct {
		Pacer  string  `json:"pacer"`
		Format int     `json:"format"`
		Unix   float64 `json:"unix_s"`
		Merged []head  `json:"merged"`
	}{version, format, begun, heads})
	if err != nil {
		return err
	}
	sum, cpu := newTally(false), 0.0
	for {
		var line *tally
		ends := 0
		for i, source := range sources {
			var text json.RawMessage
			if err := source.Decode(&text); err != nil {
				return fmt.Errorf("%s: second %d: %w", names[i], sum.Second, err)
			}
			if bytes.HasPrefix(text, []byte(`{"ended"`)) {
				var end total
				if err := json.Unmarshal(text, &end); err != nil || end.Ended != "complete" {
					return fmt.Errorf("%s: did not run to its end", names[i])
				}
				cpu += end.CPU
				ends++
				continue
			}
			one := newTally(false)
			switch err := json.Unmarshal(text, one); {
			case err != nil:
				return fmt.Errorf("%s: second %d: %w", names[i], sum.Second, err)
			case one.Second != sum.Second || line != nil && (one.Length != line.Length || (one.Corrected == nil) != (line.Corrected == nil)):
				return fmt.Errorf("%s: tells of other seconds", names[i])
			case line == nil:
				line = one
			default:
				line.merge(one)
			}
		}
		switch {
		case ends == len(sources):
			end := totalOf(sum)
			end.Ended, end.CPU = "complete", cpu
			return writeLine(out, end)
		case ends > 0:
			return fmt.Errorf("they did not last equally long: second %d is not told by all", sum.Second)
		}
		sum.follow(line)
		sum.Second++
		if err := writeLine(out, line); err != nil {
			return err
		}
	}
}
