package service

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"sort"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// given is a delay of these words, with these files.
func given(t *testing.T, words string, files map[string]string) *Delay {
	t.Helper()
	d, err := NewDelay(words, folder(files))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func folder(files map[string]string) fstest.MapFS {
	made := fstest.MapFS{}
	for name, content := range files {
		made[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return made
}

// drawn are so many draws in ms, in their order.
func drawn(d *Delay, seed uint64, count int) []float64 {
	draws, found := newDraws(seed), make([]float64, count)
	for i := range found {
		found[i] = draws.next(d.current.Load()).Seconds() * 1000
	}
	return found
}

// near is within a share of what is wanted.
func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got/want-1) > share {
		t.Errorf("%s: got %g, want %g within %g", what, got, want, share)
	}
}

// The seed is fixed, so these draws are always the same. 2 % are five standard errors of the p99.
func TestDrawsOfALognormalDelayAreThoseOfTheory(t *testing.T) {
	for _, words := range []string{"lognormal:median=200,p99=800", "lognormal:mean=238.8,p99=800", "lognormal:mean=50,p99=60"} {
		d := given(t, words, nil)
		facts := d.current.Load().facts
		var which string
		var middle, p99 float64
		if _, err := fmt.Sscanf(strings.NewReplacer("lognormal:", "", "=", " ", ",p99", " ").Replace(words), "%s %f %f", &which, &middle, &p99); err != nil {
			t.Fatal(err)
		}
		m, s := math.Log(middle), math.Log(p99/middle)/2.3263479
		if which == "mean" {
			s = 2.3263479 - math.Sqrt(2.3263479*2.3263479-2*math.Log(p99/middle))
			m -= s * s / 2
		}
		got := drawn(d, 0, 100_000)
		sum := 0.0
		for _, one := range got {
			sum += one
		}
		sort.Float64s(got)
		mean := math.Exp(m + s*s/2)
		for _, one := range []struct {
			what            string
			got, said, want float64
		}{
			{"mean", sum / 100_000, facts.MeanMS, mean},
			{"median", got[50_000], facts.MedianMS, math.Exp(m)},
			{"p95", got[95_000], facts.P95MS, math.Exp(m + 1.6448536*s)},
			{"p99", got[99_000], facts.P99MS, math.Exp(m + 2.3263479*s)},
		} {
			near(t, words+" "+one.what+" of the draws", one.got, one.want, 0.02)
			near(t, words+" "+one.what+" as told", one.said, one.want, 0.001)
		}
		near(t, words+" sd as told", facts.SdMS, mean*math.Sqrt(math.Exp(s*s)-1), 0.005)
	}
}

func TestTheSameDrawsComeAgainAfterEachChange(t *testing.T) {
	const words = "lognormal:median=200,p99=800"
	d := given(t, words, nil)
	first := drawn(d, 0, 100)
	if again := drawn(given(t, words, nil), 0, 100); fmt.Sprint(again) != fmt.Sprint(first) {
		t.Error("another start has other draws")
	}
	if other := drawn(d, 1, 100); fmt.Sprint(other) == fmt.Sprint(first) {
		t.Error("two loops have the same draws")
	}
	draws := newDraws(0)
	for range 7 {
		draws.next(d.current.Load())
	}
	if err := d.Set(words); err != nil {
		t.Fatal(err)
	}
	if next := draws.next(d.current.Load()); next.Seconds()*1000 != first[0] {
		t.Errorf("after a change the first draw is %v", next)
	}
}

func TestRecordedDelaysAreDrawnAsOftenAsTheyStandThere(t *testing.T) {
	d := given(t, "file:own.txt", map[string]string{"own.txt": "# of our checkout\r\n100\n\n 300.5 # slow\n100\n100"})
	if got, want := d.current.Load().facts, (facts{"file:own.txt", 150.1, 86.82, 100, 300.5, 300.5, 300.5}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	slow := 0
	for _, one := range drawn(d, 0, 10_000) {
		switch one {
		case 300.5:
			slow++
		case 100:
		default:
			t.Fatalf("drew %v", one)
		}
	}
	// Five standard deviations are 217.
	if slow < 2283 || slow > 2717 {
		t.Errorf("%d of 10,000 were slow, not a quarter", slow)
	}
}

func TestBadDelaysAreRefusedInOneLineThatNamesWhatIsAllowed(t *testing.T) {
	files := map[string]string{"empty": "# nothing\n\n", "bad": "1\n2\nx\n", "nan": "NaN", "long": "60001", "many": strings.Repeat("1\n", mostRecorded+1)}
	allowed := "a whole number from 0 to 60000 (ms), lognormal:median=<ms>,p99=<ms>, lognormal:mean=<ms>,p99=<ms>, or file:<name>"
	for words, want := range map[string]string{
		"fast": allowed, "": allowed, "-1": allowed, "60001": allowed, "1.5": allowed, "normal:mean=1,p99=2": allowed,
		"lognormal": allowed, "lognormal:median=200": allowed, "lognormal:p99=800,median=200": allowed,
		"lognormal:median=0,p99=800": allowed, "lognormal:median=x,p99=800": allowed, "lognormal:median=NaN,p99=800": allowed,
		"lognormal:median=200,p99=800,seed=1": allowed, "lognormal:median=200,p99=90000": allowed,
		"lognormal:median=200,p99=100": "p99 must be at least the median", "lognormal:mean=200,p99=3100": "at most 14.9 times a mean",
		"lognormal:median=200,p99=9000": "one of 65536 requests would wait",
		"file:":                         "the file must be in go/downstream/delays", "file:../secret": "the file must be in go/downstream/delays",
		"file:/etc/passwd": "the file must be in go/downstream/delays", "file:none": "there is no such file",
		"file:empty": "no delay in it", "file:bad": `line 3, "x", is not a number of milliseconds from 0 to 60000`,
		"file:nan": "line 1", "file:long": "line 1", "file:many": "more than 1000000 delays",
	} {
		_, err := NewDelay(words, folder(files))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line with %s", words, err, want)
		}
	}
}

func TestADelayIsChangedToADistributionAndTold(t *testing.T) {
	clock := &heldClock{}
	s := started(t, time.Minute, clock.told)
	status, body := manage(t, s, "PATCH", "/settings", `{"delay_ms":"lognormal:median=200,p99=800"}`)
	var told facts
	if err := json.Unmarshal([]byte(body), &told); err != nil || status != 200 {
		t.Fatal(status, body, err)
	}
	if told.DelayMS != "lognormal:median=200,p99=800" || math.Round(told.MedianMS) != 200 || math.Round(told.P99MS) != 800 {
		t.Errorf("got %s", body)
	}
	_, text := manage(t, s, "GET", "/metrics", "")
	if want := fmt.Sprint("lab_downstream_delay_seconds ", time.Duration(told.MeanMS*1e6).Seconds()); !strings.Contains(text, want) {
		t.Errorf("no %s", want)
	}
	c := connect(t, s.HTTPPort)
	c.send("GET /")
	waits(t, s, 1)
	clock.pass(s, time.Duration(told.LongestMS*1e6)+time.Microsecond)
	if _, _, body := c.read(); body != `{"service":"downstream","delay_ms":"lognormal:median=200,p99=800"}` {
		t.Errorf("got %s", body)
	}
}

// A drawn delay is no lateness, however long: each answer's lag counts from its own time.
func TestTheLagIsBeyondTheDrawnDelay(t *testing.T) {
	clock := &heldClock{}
	s := started(t, 0, clock.told)
	const words = "lognormal:median=200,p99=800"
	manage(t, s, "PATCH", "/settings", fmt.Sprintf(`{"delay_ms":%q}`, words))
	// Loops take connections in turn, so this one is of any; the draws of each are known.
	possible := map[time.Duration]bool{}
	for seed := range s.traffic.loops {
		possible[newDraws(uint64(seed)).next(given(t, words, nil).current.Load())] = true
	}
	c := connect(t, s.HTTPPort)
	c.send("GET /")
	waits(t, s, 1)
	due := time.Duration(0)
	for _, l := range s.traffic.loops {
		l.mu.Lock()
		if l.waiting.Len() > 0 {
			due = l.waiting[0].due
		}
		l.mu.Unlock()
	}
	if !possible[due] {
		t.Fatalf("due after %v, drawn was one of %v", due, possible)
	}
	clock.pass(s, due+3*time.Millisecond)
	c.read()
	_, text := manage(t, s, "GET", "/metrics", "")
	wantLines(t, text, "lab_downstream_lag_seconds_sum 0.003", "lab_downstream_lag_seconds_count 1",
		fmt.Sprint("lab_downstream_drawn_seconds_total ", due.Seconds()))
}

func TestADrawAllocatesNothing(t *testing.T) {
	reader := newRequests(given(t, "lognormal:median=200,p99=800", nil), 0)
	request := []byte("GET / HTTP/1.1\r\nHost: toxiproxy:8666\r\n\r\n")
	if made := testing.AllocsPerRun(1000, func() {
		if given, _, _ := reader.next(request, false, false); !given.delayed {
			t.Fatal(given)
		}
	}); made != 0 {
		t.Errorf("%v allocations", made)
	}
}

func BenchmarkRequest(b *testing.B) {
	for _, words := range []string{"200", "lognormal:median=200,p99=800"} {
		delay, err := NewDelay(words, nil)
		if err != nil {
			b.Fatal(err)
		}
		reader := newRequests(delay, 0)
		request := []byte("GET / HTTP/1.1\r\nHost: toxiproxy:8666\r\nUser-Agent: Java-http-client/25\r\nAccept: */*\r\n\r\n")
		b.Run(words, func(b *testing.B) {
			for b.Loop() {
				reader.next(request, false, false)
			}
		})
	}
}

// The recorded delays that come with the lab.
func TestTheSampleCanBeUsed(t *testing.T) {
	files := os.DirFS("../delays")
	names, err := fs.Glob(files, "*.txt")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		if _, err := NewDelay("file:"+name, files); err != nil {
			t.Error(err)
		}
	}
}
