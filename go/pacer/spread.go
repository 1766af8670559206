// Putting a load on from several machines at a time: each gets a share, and what they tell is added up as it comes.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// here is the name of this machine's own share.
const here = "here"

// far is how other machines are reached. One without power is found out within idle + count x interval; the kernel of one whose
// pacer has stopped still answers to that.
var far = &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{
	Timeout:         connectWithin,
	KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second, Interval: time.Second, Count: 8},
}).DialContext}}

const connectWithin = 10 * time.Second

// signalled is why a run ended before its time.
type signalled struct{ signal syscall.Signal }

func (s signalled) Error() string { return s.signal.String() }

// spread puts a load on, from here and from where others serve (HOST:PORT). It writes the lines of all added up, and those of
// each beside the load's file, as pacer-NAME.jsonl. It returns the status of the process; its errors are one line that
// names the machine.
func spread(file string, others []string, out io.Writer) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return wrongWords, err
	}
	l, err := readLoad(text)
	if err != nil {
		return wrongWords, err
	}
	going, stop := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() { stop(signalled{(<-signals).(syscall.Signal)}) }()
	parent := os.Getppid()
	go func() {
		for os.Getppid() == parent {
			time.Sleep(parentEvery)
		}
		stop(signalled{syscall.SIGTERM})
	}()
	var ends sync.WaitGroup
	// Nobody goes on when this one has ended.
	defer ends.Wait()
	defer stop(nil)
	start := time.Now()
	sources, err := begun(going, &ends, start, filepath.Dir(file), append([]string{here}, others...), l.words)
	if err == nil {
		err = alike(sources)
	}
	sum := newTally(false)
	if err == nil {
		whole := l.words.withoutValues()
		whole.Hlog = nil
		err = writeLine(out, head{version, format, float64(start.UnixMicro()) / 1e6, whole, 0})
	}
	if err == nil {
		sum, err = addUp(sources, out)
	}
	if by, ok := context.Cause(going).(signalled); ok && err != nil {
		// The seconds that all have told are whole.
		end := totalOf(sum)
		end.Ended = "interrupted"
		return bySignal + int(by.signal), writeLine(out, end)
	}
	if err != nil {
		return wentWrong, err
	}
	return ranToItsEnd, nil
}

// begun are the sources of all shares, whose runs have begun.
func begun(going context.Context, ends *sync.WaitGroup, start time.Time, folder string, names []string, w words) ([]*source, error) {
	var sources []*source
	var firsts []*stamped
	for i, share := range sharesOf(w, len(names)) {
		text, err := json.Marshal(share)
		if err != nil {
			return nil, err
		}
		// Closed as the process ends.
		kept, err := os.Create(filepath.Join(folder, "pacer-"+strings.ReplaceAll(names[i], ":", "-")+".jsonl"))
		if err != nil {
			return nil, err
		}
		lines, writer := io.Pipe()
		// Whoever writes then does not wait for a reader.
		context.AfterFunc(going, func() { _ = lines.Close() })
		first := &stamped{out: writer, start: start}
		ends.Go(func() {
			put := putThere
			if names[i] == here {
				put = putHere
			}
			_ = writer.CloseWithError(put(going, names[i], text, first))
		})
		sources = append(sources, &source{name: names[i], lines: json.NewDecoder(io.TeeReader(lines, kept))})
		firsts = append(firsts, first)
	}
	for i, one := range sources {
		if err := one.begin(); err != nil {
			return nil, err
		}
		one.begun = firsts[i].at
	}
	return sources, nil
}

// sharesOf divides a load: as many shares as there are machines, but none without a connection. Each has its own
// arrivals at random.
func sharesOf(w words, machines int) []words {
	all := *w.Connections
	shares := make([]words, min(machines, all))
	for i := range shares {
		connections := all / len(shares)
		if i < all%len(shares) {
			connections++
		}
		shares[i] = w.share(connections, uint64(i))
	}
	return shares
}

func (w words) share(connections int, number uint64) words {
	part := float64(connections) / float64(*w.Connections)
	times := func(value *float64) *float64 {
		if value == nil {
			return nil
		}
		product := *value * part
		return &product
	}
	loops, seed := min(*w.Loops, connections), *w.Seed+number<<32
	w.Connections, w.Loops, w.Seed, w.Hlog = &connections, &loops, &seed, nil
	w.Rate, w.ConnectPerS = times(w.Rate), times(w.ConnectPerS)
	profile := w.Profile
	w.Profile = nil
	for _, one := range profile {
		w.Profile = append(w.Profile, piece{one.For, times(one.From), times(one.To)})
	}
	return w
}

// putHere puts a share on from this process, whose CPU time is then that of the share, and writes what comes of it.
func putHere(going context.Context, _ string, share []byte, out io.Writer) error {
	l, err := readLoad(share)
	if err != nil {
		return err
	}
	descriptors, err := descriptorsFor(l)
	if err != nil {
		return err
	}
	r, err := newRun(l, descriptors, out)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	context.AfterFunc(going, func() { signals <- syscall.SIGTERM })
	_, err = r.do(signals, func() bool { return false })
	return err
}

// silentFor is after what time a machine that tells nothing is given up. A line is due each second.
const silentFor = 10 * time.Second

// putThere puts a share on from another machine, and writes what it tells.
func putThere(going context.Context, name string, share []byte, out io.Writer) error {
	listening, giveUp := context.WithCancelCause(going)
	defer giveUp(nil)
	silence := time.AfterFunc(silentFor, func() { giveUp(fmt.Errorf("told nothing for %v", silentFor)) })
	defer silence.Stop()
	request, err := http.NewRequestWithContext(listening, http.MethodPost, "http://"+name+"/", bytes.NewReader(share))
	if err != nil {
		return err
	}
	answer, err := far.Do(request)
	if err == nil {
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			said, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
			return fmt.Errorf("refused: %s", strings.TrimSpace(string(said)))
		}
		_, err = io.Copy(&heard{out, silence}, answer.Body)
	}
	if gone := context.Cause(listening); gone != nil && going.Err() == nil {
		return gone
	}
	return err
}

// heard writes what a machine tells. While nobody takes that, as the line of another one is waited for, it is not silent.
type heard struct {
	out     io.Writer
	silence *time.Timer
}

func (h *heard) Write(text []byte) (int, error) {
	h.silence.Stop()
	defer h.silence.Reset(silentFor)
	return h.out.Write(text)
}

// stamped remembers when the first was written, in seconds since the start.
type stamped struct {
	out   io.Writer
	start time.Time
	once  sync.Once
	at    float64
}

func (s *stamped) Write(text []byte) (int, error) {
	s.once.Do(func() { s.at = time.Since(s.start).Seconds() })
	return s.out.Write(text)
}
