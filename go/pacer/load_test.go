// Tests of the words of a load.
package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// text is a load of one request, with some keys changed. A key that is given nil is left out.
func text(change map[string]any) []byte {
	all := map[string]any{
		"connections": 10, "loops": 1, "warmup_s": 0.5, "window_s": 1.5, "arrivals": "constant", "rate": 100, "connect_per_s": 0,
		"timeout_s": 30, "seed": 1, "insecure": false, "hlog": nil, "requests": []any{wish(nil)},
	}
	return made(all, change)
}

// wish is one request of a load.
func wish(change map[string]any) json.RawMessage {
	return made(map[string]any{"method": "GET", "url": "http://127.0.0.1:1/a?b=c", "headers": map[string]string{}, "body": "", "weight": 1}, change)
}

func made(all, change map[string]any) []byte {
	for key, value := range change {
		if all[key] = value; value == nil {
			delete(all, key)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return text
}

func read(t *testing.T, change map[string]any) *load {
	t.Helper()
	l, err := readLoad(text(change))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestALoadIsUnderstood(t *testing.T) {
	l := read(t, map[string]any{"requests": []any{
		wish(nil),
		wish(map[string]any{"method": "POST", "url": "http://localhost:81", "headers": map[string]string{"x-a": "b", "Host": "other"}, "body": "häm", "weight": 3}),
		wish(map[string]any{"method": "HEAD", "url": "http://[::1]/", "headers": map[string]string{"Connection": "close"}}),
	}})
	want := []string{
		"GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: other\r\nx-a: b\r\nContent-Length: 4\r\n\r\nhäm",
		"HEAD / HTTP/1.1\r\nConnection: close\r\nHost: [::1]\r\n\r\n",
	}
	for i, r := range l.requests {
		if string(r.bytes) != want[i] {
			t.Errorf("%q, not %q", r.bytes, want[i])
		}
	}
	if last := l.requests[2]; !last.headless || !last.closes || l.requests[0].closes || last.host.name != "::1" || last.host.port != "80" {
		t.Errorf("%+v", last)
	}
	if !l.open || l.secure || l.run != seconds(2) || l.warmup != seconds(0.5) || len(l.hosts) != 3 {
		t.Errorf("%+v", l)
	}
}

// Each wrong word gets one line with its key and with what is allowed.
func TestAWrongWordIsNamed(t *testing.T) {
	profile := []any{map[string]any{"for_s": 1, "from": 1, "to": 2}}
	wishes := func(change map[string]any) []any { return []any{wish(change)} }
	for _, one := range []struct {
		key    string
		change map[string]any
	}{
		{"connections", map[string]any{"connections": nil}},
		{"connections", map[string]any{"connections": 0}},
		{"connections", map[string]any{"connections": 1.5}},
		{"connections", map[string]any{"connections": "1"}},
		{"loops", map[string]any{"loops": nil}},
		{"loops", map[string]any{"loops": 11}},
		{"loops", map[string]any{"loops": -1}},
		{"warmup_s", map[string]any{"warmup_s": nil}},
		{"warmup_s", map[string]any{"warmup_s": -1}},
		{"window_s", map[string]any{"window_s": nil}},
		{"window_s", map[string]any{"window_s": 0}},
		{"window_s", map[string]any{"window_s": 90000}},
		{"arrivals", map[string]any{"arrivals": nil}},
		{"arrivals", map[string]any{"arrivals": "open"}},
		{"rate", map[string]any{"rate": nil}},
		{"rate", map[string]any{"rate": 0}},
		{"rate", map[string]any{"arrivals": "closed"}},
		{"rate", map[string]any{"profile": profile}},
		{"profile", map[string]any{"rate": nil, "profile": []any{}}},
		{"profile", map[string]any{"rate": nil, "profile": profile, "arrivals": "closed"}},
		{"profile.for_s", map[string]any{"rate": nil, "profile": []any{map[string]any{"for_s": 0, "from": 1, "to": 2}}}},
		{"profile.from", map[string]any{"rate": nil, "profile": []any{map[string]any{"for_s": 1, "from": -1, "to": 2}}}},
		{"profile.to", map[string]any{"rate": nil, "profile": []any{map[string]any{"for_s": 1, "from": 1}}}},
		{"connect_per_s", map[string]any{"connect_per_s": nil}},
		{"connect_per_s", map[string]any{"connect_per_s": -1}},
		{"timeout_s", map[string]any{"timeout_s": nil}},
		{"timeout_s", map[string]any{"timeout_s": 0}},
		{"seed", map[string]any{"seed": nil}},
		{"seed", map[string]any{"seed": -1}},
		{"insecure", map[string]any{"insecure": nil}},
		{"insecure", map[string]any{"insecure": "yes"}},
		{"once", map[string]any{"once": true}},
		{"hlog", map[string]any{"hlog": 1}},
		{"hlog", map[string]any{"hlog": "/nowhere"}},
		{"requests", map[string]any{"requests": nil}},
		{"requests", map[string]any{"requests": []any{}}},
		{"requests.method", map[string]any{"requests": wishes(map[string]any{"method": nil})}},
		{"requests.method", map[string]any{"requests": wishes(map[string]any{"method": "get"})}},
		{"requests.method", map[string]any{"requests": wishes(map[string]any{"method": "GET /"})}},
		{"requests.url", map[string]any{"requests": wishes(map[string]any{"url": nil})}},
		{"requests.url", map[string]any{"requests": wishes(map[string]any{"url": "ftp://a/"})}},
		{"requests.url", map[string]any{"requests": wishes(map[string]any{"url": "http:///a"})}},
		{"requests.url", map[string]any{"requests": wishes(map[string]any{"url": "http://a:b@c/"})}},
		{"requests.url", map[string]any{"requests": []any{wish(nil), wish(map[string]any{"url": "https://a/"})}}},
		{"requests.url", map[string]any{"connections": 1, "requests": []any{wish(nil), wish(map[string]any{"url": "http://a/"})}}},
		{"requests.headers", map[string]any{"requests": wishes(map[string]any{"headers": nil})}},
		{"requests.headers", map[string]any{"requests": wishes(map[string]any{"headers": map[string]string{"a b": "c"}})}},
		{"requests.headers", map[string]any{"requests": wishes(map[string]any{"headers": map[string]string{"a": "b\r\nc: d"}})}},
		{"requests.headers", map[string]any{"requests": wishes(map[string]any{"headers": map[string]string{"Content-length": "1"}})}},
		{"requests.headers", map[string]any{"requests": wishes(map[string]any{"headers": map[string]int{"a": 1}})}},
		{"requests.body", map[string]any{"requests": wishes(map[string]any{"body": nil})}},
		{"requests.expect", map[string]any{"requests": wishes(map[string]any{"expect": 200})}},
		{"requests.expect", map[string]any{"requests": wishes(map[string]any{"expect": map[string]any{}})}},
		{"requests.expect.status", map[string]any{"requests": wishes(map[string]any{"expect": map[string]any{"status": []int{}}})}},
		{"requests.expect.status", map[string]any{"requests": wishes(map[string]any{"expect": map[string]any{"status": []int{200, 199}}})}},
		{"requests.expect.status", map[string]any{"requests": wishes(map[string]any{"expect": map[string]any{"status": []int{600}}})}},
		{"requests.expect.status", map[string]any{"requests": wishes(map[string]any{"expect": map[string]any{"status": []string{"ok"}}})}},
		{"requests.expect.body_contains", map[string]any{"requests": wishes(map[string]any{"expect": map[string]any{"body_contains": ""}})}},
		{"requests.expect.body_contains", map[string]any{"requests": wishes(map[string]any{"expect": map[string]any{"body_contains": strings.Repeat("x", 1001)}})}},
		{"requests.expect.body_contains", map[string]any{"requests": wishes(map[string]any{"method": "HEAD", "expect": map[string]any{"body_contains": "a"}})}},
		{"requests.expect.body_contains", map[string]any{"requests": wishes(map[string]any{"expect": map[string]any{"body_contains": 1}})}},
		{"requests.weight", map[string]any{"requests": wishes(map[string]any{"weight": nil})}},
		{"requests.weight", map[string]any{"requests": wishes(map[string]any{"weight": 0})}},
		{"requests.weight", map[string]any{"requests": []any{wish(nil), wish(map[string]any{"weight": "1"})}}},
		{"profile.to", map[string]any{"rate": nil, "profile": []any{map[string]any{"for_s": 1, "from": 1, "to": "2"}}}},
	} {
		_, err := readLoad(text(one.change))
		if err == nil || !strings.HasPrefix(err.Error(), one.key+": "+allowed[one.key]) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v", fmt.Sprint(one.change), err)
		}
	}
	for words, part := range map[string]string{
		string(text(map[string]any{"conections": 1})): `"conections" is no key of a load; allowed: arrivals, connect_per_s,`,
		"":                                    "no JSON object",
		"[]":                                  "no JSON object",
		"{":                                   "no JSON object",
		string(text(nil)) + string(text(nil)): "nothing follows it",
	} {
		if _, err := readLoad([]byte(words)); err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", words, err)
		}
	}
}
