// The logs of histograms that HdrHistogram's own tools read.
package main

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// logs are raw.hlog, failed.hlog, late.hlog and corrected.hlog (of an open load), with an interval for each second.
// The tools expect nanoseconds, so a bucket's upper end in µs stands there times 1,000.
type logs struct {
	files   []*os.File
	writers []*hdrhistogram.HistogramLogWriter
	one     *hdrhistogram.Histogram
}

// newLogs creates the files that a load asks for.
func newLogs(l *load) (*logs, error) {
	w := &logs{}
	if l.words.Hlog == nil {
		return w, nil
	}
	w.one = hdrhistogram.New(1000, mostUs*1000, 3)
	names := []string{"raw.hlog", "failed.hlog", "late.hlog"}
	if l.open {
		names = append(names, "corrected.hlog")
	}
	for _, name := range names {
		file, err := os.Create(filepath.Join(*l.words.Hlog, name))
		if err != nil {
			return nil, err
		}
		w.files = append(w.files, file)
		w.writers = append(w.writers, hdrhistogram.NewHistogramLogWriter(file))
	}
	return w, nil
}

// write adds the second of a line.
func (w *logs) write(start time.Time, line *tally) error {
	if w.one == nil {
		return nil
	}
	from := start.Add(time.Duration(line.Second) * time.Second)
	var failed error
	for i, h := range []*histogram{&line.Raw, &line.Failed, &line.Late, line.Corrected}[:len(w.files)] {
		if line.Second == 0 {
			failed = errors.Join(failed, w.writers[i].OutputLogFormatVersion(), w.writers[i].OutputStartTime(start.UnixMilli()), w.writers[i].OutputLegend())
		}
		w.one.Reset()
		w.one.SetStartTimeMs(from.UnixMilli())
		w.one.SetEndTimeMs(from.Add(seconds(line.Length)).UnixMilli())
		h.each(func(upperUs int64, count uint32) {
			failed = errors.Join(failed, w.one.RecordValues(upperUs*1000, int64(count)))
		})
		failed = errors.Join(failed, w.writers[i].OutputIntervalHistogram(w.one))
	}
	return failed
}

// close ends the files.
func (w *logs) close() error {
	var failed error
	for _, file := range w.files {
		failed = errors.Join(failed, file.Close())
	}
	return failed
}
