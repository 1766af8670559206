// Tests of what an answer has to be.
package main

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hope is what an answer has to be; without a text, of its status alone.
func hope(t *testing.T, statuses []int, text string) *expect {
	t.Helper()
	of := &hoped{Status: statuses}
	if text != "" {
		of.Body = &text
	}
	e, err := expectation(of, false)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A text is found wherever it stands and however the body is cut, and nowhere else: as bytes.Contains finds it.
func TestATextIsFoundHoweverTheBodyIsCut(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	letters := func(longest int) []byte {
		some := make([]byte, 1+random.IntN(longest))
		for i := range some {
			some[i] = "ab"[random.IntN(2)]
		}
		return some
	}
	there := 0
	for range 20000 {
		text, body := letters(7), letters(40)
		e := hope(t, nil, string(text))
		found := 0
		for rest := body; len(rest) > 0; {
			cut := 1 + random.IntN(len(rest))
			found = e.seek(found, rest[:cut])
			rest = rest[cut:]
		}
		want := bytes.Contains(body, text)
		if want {
			there++
		}
		if (found == len(text)) != want {
			t.Fatalf("%s in %s: %d", text, body, found)
		}
	}
	if there < 5000 || there > 15000 {
		t.Error("one case only:", there)
	}
}

// What is looked for is the body: not its head, not the sizes of its chunks, nor what follows the answer.
func TestATextIsLookedForInTheBodyAlone(t *testing.T) {
	for _, one := range []struct {
		bytes, text string
		found       bool
	}{
		{"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd", "bc", true},
		{"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd", "OK", false},
		{"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcdef", "de", false},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n2;x=bc\r\ncd\r\n0\r\nA: abcd\r\n\r\n", "abcd", true},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n2;x=y\r\ncd\r\n0\r\nA: yz\r\n\r\n", "y", false},
		{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", true},
		{"HTTP/1.1 200 OK\r\n\r\nuntil the end", "the end", true},
		{"HTTP/1.1 204 None\r\n\r\n", "a", false},
	} {
		text, asked := []byte(one.bytes), &request{expect: hope(t, nil, one.text)}
		for cut := range text {
			var a answer
			kept, whole, err := a.read(text[:cut:cut], asked)
			if err == nil && !whole {
				_, _, err = a.read(append(bytes.Clone(kept), text[cut:]...), asked)
			}
			if err != nil || asked.expect.met(&a) != one.found {
				t.Fatalf("%q in %q, cut at %d: %+v %v", one.text, one.bytes, cut, a, err)
			}
		}
	}
}

func TestWhatIsExpectedOverridesWhatAnErrorIs(t *testing.T) {
	for _, one := range []struct {
		expect *expect
		a      answer
		met    bool
	}{
		{nil, answer{status: 399}, true},
		{nil, answer{status: 400}, false},
		{hope(t, []int{404}, ""), answer{status: 404}, true},
		{hope(t, []int{404}, ""), answer{status: 200}, false},
		{hope(t, []int{200, 409}, ""), answer{status: 409}, true},
		{hope(t, nil, "ab"), answer{status: 200, found: 2}, true},
		{hope(t, nil, "ab"), answer{status: 200, found: 1}, false},
		{hope(t, nil, "ab"), answer{status: 500, found: 2}, false},
		{hope(t, []int{500}, "ab"), answer{status: 500, found: 2}, true},
		{hope(t, []int{500}, "ab"), answer{status: 500}, false},
	} {
		count := newTally(false)
		count.answered(&request{number: 7, expect: one.expect}, &one.a, time.Millisecond, time.Millisecond)
		unexpected := count.Unexpected[miss{7, one.a.status}]
		if (count.Ok == 1) != one.met || count.Ok+count.HTTPErrors != 1 || unexpected == 1 != (one.expect != nil && !one.met) {
			t.Errorf("%+v of %+v: %+v", one.a, one.expect, count.Unexpected)
		}
	}
}

// The program tells which of the requests was not answered as expected, with what status, and how often; so does the sum of two.
func TestTheProgramTellsWhatWasNotAsExpected(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gone" {
			w.WriteHeader(404)
		}
		_, _ = io.WriteString(w, `{"items": [`+strings.Repeat("1, ", 100_000)+`], "state": "done"}`)
	}))
	defer server.Close()
	expecting := func(path string, of map[string]any) any {
		return wish(map[string]any{"url": server.URL + path, "expect": of})
	}
	folder := t.TempDir()
	load := short("", map[string]any{"connections": 4, "requests": []any{
		expecting("/", map[string]any{"body_contains": `"state": "done"`}),
		expecting("/", map[string]any{"status": []int{200}, "body_contains": `"state": "lost"`}),
		expecting("/gone", map[string]any{"status": []int{404}}),
		expecting("/gone", map[string]any{"status": []int{200, 201}}),
	}})
	o := ran(t, load)
	byKind := map[[2]int]int{}
	for _, one := range o.sum.Unexpected {
		byKind[[2]int{one[0], one[1]}] += one[2]
	}
	lost, gone := byKind[[2]int{1, 200}], byKind[[2]int{3, 404}]
	if len(byKind) != 2 || lost == 0 || gone == 0 || lost+gone != o.sum.HTTPErrors || o.sum.Ok == 0 || o.sum.Statuses["404"] <= gone {
		t.Errorf("%v of %+v", byKind, o.sum)
	}
	name := filepath.Join(folder, "one")
	command := itself("pacer", "-")
	command.Stdin = bytes.NewReader(text(load))
	told, err := command.Output()
	if err == nil {
		err = os.WriteFile(name, told, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	twice, err := itself("pacer", "merge", name, name).Output()
	if err != nil {
		t.Fatal(err)
	}
	once, both := 0, 0
	for _, one := range understand(t, told).sum.Unexpected {
		once += one[2]
	}
	for _, one := range understand(t, twice).sum.Unexpected {
		both += one[2]
	}
	if once == 0 || both != 2*once {
		t.Error(once, both)
	}
}
