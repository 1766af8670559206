// The words of a load: what is allowed, and what each means.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The ways in which requests arrive.
const (
	closed   = "closed"
	constant = "constant"
	poisson  = "poisson"
)

// allowed says for each key what it may be. Every key has to be there.
var allowed = map[string]string{
	"connections":      "a whole number from 1",
	"loops":            "a whole number from 0 to 64 and at most connections; 0: the program chooses",
	"warmup_s":         "seconds from 0",
	"window_s":         "seconds above 0; with the warm-up at most 86400",
	"arrivals":         "closed, constant or poisson",
	"rate":             "requests/s above 0; for constant or poisson, without a profile",
	"profile":          "a list of {for_s, from, to}; for constant or poisson, without a rate",
	"profile.for_s":    "seconds above 0",
	"profile.from":     "requests/s from 0",
	"profile.to":       "requests/s from 0",
	"connect_per_s":    "connections/s from 0; 0: all at once",
	"timeout_s":        "seconds above 0",
	"seed":             "a whole number from 0",
	"requests":         "a list of 1 or more {method, url, headers, body, weight} and, where wanted, expect",
	"requests.method":  "a method of HTTP in capital letters, not CONNECT",
	"requests.url":     "http://… or https://…, the same for all, without user and fragment; to at most as many hosts as a loop has connections",
	"requests.headers": "names and values of HTTP headers; not Content-Length or Transfer-Encoding, which follow from the body",
	"requests.body":    "a text",
	"requests.weight":  "a number above 0",
	"insecure":         "true or false",
	"once":             "true or false; for a closed load",
	"hlog":             "a folder that is there, or null",

	"requests.expect":               "null, or {status, body_contains}, one of them or both",
	"requests.expect.status":        "a list of statuses from 200 to 599; without: all below 400",
	"requests.expect.body_contains": "a text of 1 to 1000 bytes; not for HEAD, which has no body",
}

// What RFC 9110 allows as a header's name, and as its value.
var (
	token = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
	field = regexp.MustCompile(`^[^\x00-\x08\x0a-\x1f\x7f]*$`)
)

// words are a load as it is written. A pointer is nil where a key is missing or null.
type words struct {
	Connections *int     `json:"connections"`
	Loops       *int     `json:"loops"`
	Warmup      *float64 `json:"warmup_s"`
	Window      *float64 `json:"window_s"`
	Arrivals    *string  `json:"arrivals"`
	Rate        *float64 `json:"rate,omitempty"`
	Profile     []piece  `json:"profile,omitempty"`
	ConnectPerS *float64 `json:"connect_per_s"`
	Timeout     *float64 `json:"timeout_s"`
	Seed        *uint64  `json:"seed"`
	Requests    []wanted `json:"requests"`
	Insecure    *bool    `json:"insecure"`
	Once        bool     `json:"once,omitempty"`
	Hlog        *string  `json:"hlog"`
}

// highestRate is that of an open load, in requests/s; 0 of a closed one.
func (w words) highestRate() float64 {
	highest := 0.0
	if w.Rate != nil {
		highest = *w.Rate
	}
	for _, one := range w.Profile {
		highest = max(highest, *one.From, *one.To)
	}
	return highest
}

// withoutValues are the words as they may be told and kept: without the values of headers, of which some are secret.
func (w words) withoutValues() words {
	w.Requests = slices.Clone(w.Requests)
	for i, one := range w.Requests {
		w.Requests[i].Headers = map[string]string{}
		for name := range one.Headers {
			w.Requests[i].Headers[name] = ""
		}
	}
	return w
}

// piece is a part of a profile: from one rate to another, in requests/s.
type piece struct {
	For  *float64 `json:"for_s"`
	From *float64 `json:"from"`
	To   *float64 `json:"to"`
}

// wanted is one of the requests that are sent.
type wanted struct {
	Method  *string           `json:"method"`
	URL     *string           `json:"url"`
	Headers map[string]string `json:"headers"`
	Body    *string           `json:"body"`
	Weight  *float64          `json:"weight"`
	Expect  *hoped            `json:"expect,omitempty"`
}

// hoped is what an answer has to be.
type hoped struct {
	Status []int   `json:"status,omitempty"`
	Body   *string `json:"body_contains,omitempty"`
}

// load is what is to be sent, checked. It is only read.
type load struct {
	words    words
	warmup   time.Duration
	run      time.Duration
	timeout  time.Duration
	open     bool
	secure   bool
	requests []*request
	hosts    []*host
}

// request is one of the requests that are sent, ready to be written.
type request struct {
	bytes  []byte
	host   *host
	weight float64
	// number is its place among the requests of the load.
	number int
	expect *expect
	// headless is whether its answer has no body, closes whether it asks for the connection's end.
	headless, closes bool
}

// wrong is a word that is not allowed.
type wrong struct{ key, got string }

func (w wrong) Error() string {
	return fmt.Sprintf("%s: %s is allowed, not %s", w.key, allowed[w.key], w.got)
}

// readLoad checks a load of so many loops as descriptors allow. Its errors are one line.
func readLoad(text []byte) (*load, error) {
	var w words
	reader := json.NewDecoder(bytes.NewReader(text))
	reader.DisallowUnknownFields()
	if err := reader.Decode(&w); err != nil {
		return nil, unreadable(err)
	}
	if _, err := reader.Token(); err != io.EOF {
		return nil, errors.New("the load is one JSON object, and nothing follows it")
	}
	if err := w.missing(); err != nil {
		return nil, err
	}
	if err := w.check(); err != nil {
		return nil, err
	}
	l := &load{words: w, warmup: seconds(*w.Warmup), run: seconds(*w.Warmup) + seconds(*w.Window), timeout: seconds(*w.Timeout), open: *w.Arrivals != closed}
	for _, one := range w.Requests {
		if err := l.add(one); err != nil {
			return nil, err
		}
	}
	if loops := max(1, *w.Loops); *w.Connections/loops < len(l.hosts) {
		return nil, wrong{"requests.url", fmt.Sprintf("%d hosts", len(l.hosts))}
	}
	return l, nil
}

// unreadable names the key that JSON could not be read into.
func unreadable(err error) error {
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && keyOf(kind.Field) != "":
		return wrong{keyOf(kind.Field), "a JSON " + kind.Value}
	case strings.Contains(err.Error(), "unknown field"):
		_, name, _ := strings.Cut(err.Error(), "unknown field ")
		return fmt.Errorf("%s is no key of a load; allowed: %s", name, strings.Join(slices.Sorted(maps.Keys(allowed)), ", "))
	}
	return fmt.Errorf("the load is no JSON object: %s", strings.ReplaceAll(err.Error(), "\n", " "))
}

// keyOf is the key of a path in JSON, in which places in lists and names of headers may stand.
func keyOf(path string) string {
	names := slices.DeleteFunc(strings.Split(path, "."), func(name string) bool { return number([]byte(name)) >= 0 })
	for ; len(names) > 0; names = names[:len(names)-1] {
		if key := strings.Join(names, "."); allowed[key] != "" {
			return key
		}
	}
	return ""
}

func (w *words) missing() error {
	there := []struct {
		key   string
		there bool
	}{
		{"connections", w.Connections != nil}, {"loops", w.Loops != nil}, {"warmup_s", w.Warmup != nil},
		{"window_s", w.Window != nil}, {"arrivals", w.Arrivals != nil}, {"connect_per_s", w.ConnectPerS != nil},
		{"timeout_s", w.Timeout != nil}, {"seed", w.Seed != nil}, {"insecure", w.Insecure != nil},
		{"requests", w.Requests != nil},
	}
	for _, one := range there {
		if !one.there {
			return wrong{one.key, "nothing"}
		}
	}
	for _, one := range w.Profile {
		for key, value := range map[string]*float64{"for_s": one.For, "from": one.From, "to": one.To} {
			if value == nil {
				return wrong{"profile." + key, "nothing"}
			}
		}
	}
	for _, one := range w.Requests {
		switch {
		case one.Method == nil:
			return wrong{"requests.method", "nothing"}
		case one.URL == nil:
			return wrong{"requests.url", "nothing"}
		case one.Headers == nil:
			return wrong{"requests.headers", "nothing"}
		case one.Body == nil:
			return wrong{"requests.body", "nothing"}
		case one.Weight == nil:
			return wrong{"requests.weight", "nothing"}
		}
	}
	return nil
}

func (w *words) check() error {
	open := *w.Arrivals == constant || *w.Arrivals == poisson
	switch {
	case *w.Connections < 1:
		return wrong{"connections", fmt.Sprint(*w.Connections)}
	case *w.Loops < 0 || *w.Loops > 64 || *w.Loops > *w.Connections:
		return wrong{"loops", fmt.Sprint(*w.Loops)}
	case *w.Warmup < 0:
		return wrong{"warmup_s", fmt.Sprint(*w.Warmup)}
	case *w.Window <= 0 || *w.Warmup+*w.Window > 86400:
		return wrong{"window_s", fmt.Sprint(*w.Window)}
	case !open && *w.Arrivals != closed:
		return wrong{"arrivals", fmt.Sprintf("%q", *w.Arrivals)}
	case !open && w.Rate != nil:
		return wrong{"rate", "for a closed load"}
	case !open && w.Profile != nil:
		return wrong{"profile", "for a closed load"}
	case open && w.Once:
		return wrong{"once", "true for an open load"}
	case open && w.Profile != nil && w.Rate != nil:
		return wrong{"rate", "both"}
	case open && w.Profile == nil && w.Rate == nil:
		return wrong{"rate", "nothing"}
	case w.Rate != nil && *w.Rate <= 0:
		return wrong{"rate", fmt.Sprint(*w.Rate)}
	case w.Profile != nil && len(w.Profile) == 0:
		return wrong{"profile", "an empty list"}
	case *w.ConnectPerS < 0:
		return wrong{"connect_per_s", fmt.Sprint(*w.ConnectPerS)}
	case *w.Timeout <= 0 || *w.Timeout > 86400:
		return wrong{"timeout_s", fmt.Sprint(*w.Timeout)}
	case len(w.Requests) == 0:
		return wrong{"requests", "an empty list"}
	}
	if w.Hlog != nil {
		if there, err := os.Stat(*w.Hlog); err != nil || !there.IsDir() {
			return wrong{"hlog", fmt.Sprintf("%q", *w.Hlog)}
		}
	}
	for _, one := range w.Profile {
		switch {
		case *one.For <= 0:
			return wrong{"profile.for_s", fmt.Sprint(*one.For)}
		case *one.From < 0:
			return wrong{"profile.from", fmt.Sprint(*one.From)}
		case *one.To < 0:
			return wrong{"profile.to", fmt.Sprint(*one.To)}
		}
	}
	return nil
}

// add makes a request ready.
func (l *load) add(one wanted) error {
	if *one.Weight <= 0 {
		return wrong{"requests.weight", fmt.Sprint(*one.Weight)}
	}
	method := *one.Method
	if !token.MatchString(method) || strings.ToUpper(method) != method || method == "CONNECT" {
		return wrong{"requests.method", fmt.Sprintf("%q", method)}
	}
	to, err := url.Parse(*one.URL)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Hostname() == "" || to.User != nil || to.Fragment != "" ||
		len(l.requests) > 0 && l.secure != (to.Scheme == "https") {
		return wrong{"requests.url", fmt.Sprintf("%q", *one.URL)}
	}
	l.secure = to.Scheme == "https"
	r := &request{host: l.host(to), weight: *one.Weight, number: len(l.requests), headless: method == "HEAD"}
	if r.expect, err = expectation(one.Expect, r.headless); err != nil {
		return err
	}
	named := map[string]bool{}
	var head strings.Builder
	for _, name := range slices.Sorted(maps.Keys(one.Headers)) {
		value, key := one.Headers[name], strings.ToLower(name)
		if !token.MatchString(name) || !field.MatchString(value) ||
			key == "content-length" || key == "transfer-encoding" {
			return wrong{"requests.headers", fmt.Sprintf("%q, or its value", name)}
		}
		named[key] = true
		r.closes = r.closes || key == "connection" && strings.EqualFold(value, "close")
		fmt.Fprintf(&head, "%s: %s\r\n", name, value)
	}
	if !named["host"] {
		fmt.Fprintf(&head, "Host: %s\r\n", to.Host)
	}
	if *one.Body != "" || method == "POST" || method == "PUT" || method == "PATCH" {
		fmt.Fprintf(&head, "Content-Length: %d\r\n", len(*one.Body))
	}
	r.bytes = fmt.Appendf(nil, "%s %s HTTP/1.1\r\n%s\r\n%s", method, to.RequestURI(), head.String(), *one.Body)
	l.requests = append(l.requests, r)
	return nil
}

// host is the host of an address, made when it is first named.
func (l *load) host(to *url.URL) *host {
	port := to.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[to.Scheme]
	}
	for _, one := range l.hosts {
		if one.name == to.Hostname() && one.port == port {
			return one
		}
	}
	one := &host{name: to.Hostname(), port: port}
	l.hosts = append(l.hosts, one)
	return one
}

// seconds is a number of seconds, to the nanosecond.
func seconds(s float64) time.Duration {
	return time.Duration(math.Round(s * 1e9))
}
