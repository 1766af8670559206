package service

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// MaxDelayMS is the longest delay that can be set, in milliseconds.
	MaxDelayMS = 60_000
	// RecordedIn is the folder of recorded delays in the container.
	RecordedIn = "/delays"
	// strata are how many delays stand for a lognormal distribution, all equally likely: of so many requests
	// one waits for the longest.
	strata = 1 << 16
	// mostRecorded is how many delays a file may hold.
	mostRecorded = 1_000_000
)

// delayWords are the ways to say a delay.
const delayWords = "a whole number from 0 to 60000 (ms), lognormal:median=<ms>,p99=<ms>, lognormal:mean=<ms>,p99=<ms>, or file:<name> of a file in go/downstream/delays"

// Delay is what requests wait, and the answer that says so: one time for all, or one drawn for each. It is
// safe for use by many goroutines; a change holds for requests that arrive after it.
type Delay struct {
	recorded fs.FS
	current  atomic.Pointer[setting]
}

// setting is made once per change, not once per request.
type setting struct {
	// delays are all equally likely, the shortest first.
	delays []time.Duration
	facts  facts
	body   string
	answer []byte
}

// facts are what GET /settings tells of a delay: of what is drawn, in ms, to four digits. SdMS is the
// standard deviation.
type facts struct {
	// DelayMS is a number, or the words of a distribution.
	DelayMS   any     `json:"delay_ms"`
	MeanMS    float64 `json:"mean_ms"`
	SdMS      float64 `json:"sd_ms"`
	MedianMS  float64 `json:"median_ms"`
	P95MS     float64 `json:"p95_ms"`
	P99MS     float64 `json:"p99_ms"`
	LongestMS float64 `json:"longest_ms"`
}

// NewDelay starts with the given delay, in one of the ways that delayWords names. recorded is the folder of
// the files.
func NewDelay(words string, recorded fs.FS) (*Delay, error) {
	d := &Delay{recorded: recorded}
	return d, d.Set(words)
}

// Set changes the delay, or fails with one line and changes nothing. A file is read again.
func (d *Delay) Set(words string) error {
	delays, err := d.read(words)
	if err != nil {
		return err
	}
	var told any = words
	if ms, err := strconv.Atoi(words); err == nil {
		told = ms
	}
	name, err := json.Marshal(told)
	if err != nil {
		return err
	}
	body := fmt.Sprintf(`{"service":"downstream","delay_ms":%s}`, name)
	d.current.Store(&setting{delays, factsOf(told, delays), body, rendered(200, "application/json", "", body)})
	return nil
}

// Mean of the delay in force.
func (d *Delay) Mean() time.Duration {
	return time.Duration(d.current.Load().facts.MeanMS * float64(time.Millisecond))
}

// Words that set the delay in force.
func (d *Delay) Words() string { return fmt.Sprint(d.current.Load().facts.DelayMS) }

// read is the delays that the words mean, the shortest first.
func (d *Delay) read(words string) ([]time.Duration, error) {
	kind, rest, _ := strings.Cut(words, ":")
	switch kind {
	case "lognormal":
		return lognormal(rest)
	case "file":
		return recorded(d.recorded, rest)
	}
	ms, err := whole(words, 0, MaxDelayMS)
	if err != nil {
		return nil, fmt.Errorf("%q is not %s", words, delayWords)
	}
	return []time.Duration{time.Duration(ms) * time.Millisecond}, nil
}

// lognormal is the distribution of times whose logarithms are normal, cut into strata of equal
// probability. Each stands for itself by its median, so no delay is beyond 4.3 standard deviations. With m
// and s, the mean and the standard deviation of the logarithm, its median is e^m, its mean e^(m+s²/2), and
// its p99 e^(m+2.326 s) (N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions 1,
// 1994, chapter 14).
func lognormal(words string) ([]time.Duration, error) {
	centre, tail, _ := strings.Cut(words, ",")
	which, middle, known := quantity(centre, "median", "mean")
	_, p99, tailed := quantity(tail, "p99")
	if !known || !tailed {
		return nil, fmt.Errorf("%q is not %s", "lognormal:"+words, delayWords)
	}
	z := normal(0.99)
	s := math.Log(p99/middle) / z
	if which == "mean" {
		// Of s² - 2 z s + 2 ln(p99 / mean) = 0, the smaller.
		s = z - math.Sqrt(z*z-2*math.Log(p99/middle))
	}
	// Not a number: no lognormal distribution has a p99 of more than e^(z²/2) = 15 times its mean.
	if math.IsNaN(s) || s < 0 {
		return nil, fmt.Errorf("%q: no such distribution; p99 must be at least the %s, and at most 14.9 times a mean", "lognormal:"+words, which)
	}
	m := math.Log(p99) - z*s
	delays := make([]time.Duration, strata)
	for i := strata - 1; i >= 0; i-- {
		ms := math.Exp(m + s*normal((float64(i)+0.5)/strata))
		if ms > MaxDelayMS {
			return nil, fmt.Errorf("%q: one of %d requests would wait %.0f s, and at most %d ms are allowed", "lognormal:"+words, strata, ms/1000, MaxDelayMS)
		}
		delays[i] = time.Duration(ms * float64(time.Millisecond))
	}
	return delays, nil
}

// quantity reads <name>=<ms>, with one of the names, and with more than 0 and at most MaxDelayMS.
func quantity(words string, names ...string) (string, float64, bool) {
	name, value, _ := strings.Cut(words, "=")
	ms, err := strconv.ParseFloat(value, 64)
	known := err == nil && ms > 0 && ms <= MaxDelayMS
	for _, one := range names {
		if known && name == one {
			return name, ms, true
		}
	}
	return "", 0, false
}

// normal is the quantile of the standard normal distribution.
func normal(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// recorded reads a file of milliseconds, one a line. Empty lines, and what follows a #, are comments.
func recorded(folder fs.FS, name string) ([]time.Duration, error) {
	refuse := func(problem string, of ...any) ([]time.Duration, error) {
		return nil, fmt.Errorf("%q: %s", "file:"+name, fmt.Sprintf(problem, of...))
	}
	if name == "" || strings.ContainsAny(name, "/\\") || !fs.ValidPath(name) {
		return refuse("not a file's name; the file must be in go/downstream/delays")
	}
	content, err := fs.ReadFile(folder, name)
	if err != nil {
		return refuse("there is no such file in go/downstream/delays that can be read")
	}
	var delays []time.Duration
	for at, line := range strings.Split(string(content), "\n") {
		value, _, _ := strings.Cut(line, "#")
		if value = strings.TrimSpace(value); value == "" {
			continue
		}
		ms, err := strconv.ParseFloat(value, 64)
		// Not a number is neither.
		if err != nil || !(ms >= 0 && ms <= MaxDelayMS) {
			return refuse("line %d, %.40q, is not a number of milliseconds from 0 to %d", at+1, value, MaxDelayMS)
		}
		if len(delays) == mostRecorded {
			return refuse("more than %d delays", mostRecorded)
		}
		delays = append(delays, time.Duration(ms*float64(time.Millisecond)))
	}
	if len(delays) == 0 {
		return refuse("no delay in it; it needs one number of milliseconds a line")
	}
	sort.Slice(delays, func(i, j int) bool { return delays[i] < delays[j] })
	return delays, nil
}

func factsOf(told any, delays []time.Duration) facts {
	count, sum, squares := float64(len(delays)), 0.0, 0.0
	for _, one := range delays {
		sum += one.Seconds()
	}
	for _, one := range delays {
		squares += math.Pow(one.Seconds()-sum/count, 2)
	}
	// The shortest of them that so great a share does not exceed.
	quantile := func(p float64) float64 { return inMS(delays[int(math.Ceil(p*count))-1].Seconds()) }
	return facts{told, inMS(sum / count), inMS(math.Sqrt(squares / count)),
		quantile(0.5), quantile(0.95), quantile(0.99), quantile(1)}
}

// inMS is four digits of the milliseconds.
func inMS(seconds float64) float64 {
	ms, _ := strconv.ParseFloat(strconv.FormatFloat(seconds*1000, 'g', 4, 64), 64)
	return ms
}

// draws takes delays at random, with replacement: the order in a file tells nothing once several loops and
// servers share it, and no trial depends on where in the file it began. The generator begins anew with each
// change, from the same seed, so a run gets the same draws again. One per loop; not safe for use by many
// goroutines.
type draws struct {
	of     *setting
	seed   uint64
	source rand.PCG
	random *rand.Rand
}

func newDraws(seed uint64) *draws {
	d := &draws{seed: seed}
	d.random = rand.New(&d.source)
	return d
}

// next is the delay of the next request.
func (d *draws) next(from *setting) time.Duration {
	if len(from.delays) == 1 {
		return from.delays[0]
	}
	if d.of != from {
		d.of = from
		d.source.Seed(1, d.seed)
	}
	return from.delays[d.random.IntN(len(from.delays))]
}
