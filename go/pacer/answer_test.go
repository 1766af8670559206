// Tests of where answers end.
package main

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// given is bytes from a server, and what they are to a request.
type given struct {
	name, bytes string
	headless    bool
	// whole is whether the answer ends before the connection does, after are the bytes that follow it.
	whole  bool
	status int
	closes bool
	after  string
}

var answers = []given{
	{"a length", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", false, true, 200, false, ""},
	{"no body", "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", false, true, 503, false, ""},
	{"more than the answer", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc", false, true, 200, false, "bc"},
	{"a long body", "HTTP/1.1 200 OK\r\ncontent-length: 300\r\n\r\n" + strings.Repeat("x", 300), false, true, 200, false, ""},
	{"lines without CR", "HTTP/1.1 200 OK\nContent-Length: 1\n\na", false, true, 200, false, ""},
	{"to be closed, among others", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: x, close\r\n\r\na", false, true, 200, true, ""},
	{"to be closed", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\na", false, true, 200, true, ""},
	{"to be closed, in capitals", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nCONNECTION: Close\r\n\r\na", false, true, 200, true, ""},
	{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", false, true, 200, true, ""},
	{"HTTP/1.0 that is kept", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\na", false, true, 200, false, ""},
	{"no length", "HTTP/1.1 200 OK\r\n\r\nabc", false, false, 200, true, ""},
	{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nB;x=y\r\n0123456789a\r\n0\r\n\r\n", false, true, 200, false, ""},
	{"chunks and a trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n00\r\nA: b\r\nC: d\r\n\r\nmore", false, true, 200, false, "more"},
	{"chunks before a length", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n2\r\nab\r\n0\r\n\r\n", false, true, 200, false, ""},
	{"chunks, to be closed", "HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n", false, true, 404, true, ""},
	{"interim answers", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", false, true, 200, false, ""},
	{"204", "HTTP/1.1 204 None\r\n\r\n", false, true, 204, false, ""},
	{"204 to be closed", "HTTP/1.1 204 None\r\nConnection: close\r\n\r\n", false, true, 204, true, ""},
	{"304 with a length", "HTTP/1.1 304 Same\r\nContent-Length: 9\r\n\r\n", false, true, 304, false, ""},
	{"HEAD with a length", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", true, true, 200, false, ""},
	{"HEAD without a length", "HTTP/1.1 200 OK\r\n\r\n", true, true, 200, false, ""},
	{"HEAD of chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", true, true, 200, false, ""},
	{"HEAD to be closed", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", true, true, 200, true, ""},
	{"HEAD without a length, to be closed", "HTTP/1.1 200 OK\r\nA: b\r\nConnection: close\r\nC: d\r\n\r\n", true, true, 200, true, ""},
	{"HEAD of HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\n", true, true, 200, true, ""},
}

// in reads pieces as a connection does: part of a head is kept until more comes.
func in(pieces [][]byte, headless bool) (a answer, kept []byte, whole bool, err error) {
	for _, piece := range pieces {
		kept, whole, err = a.read(append(bytes.Clone(kept), piece...), &request{headless: headless})
		kept = bytes.Clone(kept)
		if err != nil || whole {
			return
		}
	}
	return
}

// An answer is read the same wherever it is cut.
func TestWhereAnAnswerEnds(t *testing.T) {
	for _, one := range answers {
		t.Run(one.name, func(t *testing.T) {
			text := []byte(one.bytes)
			end := len(text) - len(one.after)
			for cut := range end {
				a, kept, whole, err := in([][]byte{text[:cut], text[cut:]}, one.headless)
				if err != nil || whole != one.whole || a.status != one.status || a.closes != one.closes || string(kept) != one.after {
					t.Fatalf("cut at %d: %+v %q %v %v", cut, a, kept, whole, err)
				}
			}
			var single [][]byte
			for i := range end {
				single = append(single, text[i:i+1])
			}
			if a, _, whole, err := in(single, one.headless); err != nil || whole != one.whole || a.status != one.status || a.closes != one.closes {
				t.Fatalf("byte by byte: %+v %v %v", a, whole, err)
			}
		})
	}
}

func TestWhatIsNoAnswer(t *testing.T) {
	for _, text := range []string{
		"SSH-2.0-x\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 99 Low\r\n\r\n", "HTTP/1.1 101 Switch\r\n\r\n", "HTTP/1.1 2000 High\r\n\r\n", "HTTP/2 200\r\n\r\n",
		"HTTP/1.1 200 OK\r\nno header\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000000000000000\r\n",
		"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", headBytes),
	} {
		if a, _, whole, err := in([][]byte{[]byte(text)}, false); err == nil {
			t.Errorf("%.60q: %+v %v", text, a, whole)
		}
	}
}

// Whatever comes, it is used up, kept, or refused.
func TestNonsenseIsSurvived(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		text := []byte(answers[random.IntN(len(answers))].bytes)
		for range 1 + random.IntN(4) {
			text[random.IntN(len(text))] = byte(random.IntN(256))
		}
		cut := random.IntN(len(text))
		a, kept, _, err := in([][]byte{text[:cut], text[cut:]}, random.IntN(2) == 0)
		if err == nil && (a.left < 0 || len(kept) > len(text)) {
			t.Fatalf("%q: %+v", text, a)
		}
	}
}

// Reading allocates nothing, so that the collector has nothing to do while a load runs.
func TestReadingAllocatesNothing(t *testing.T) {
	for _, one := range answers {
		text, asked := []byte(one.bytes), &request{headless: one.headless, expect: hope(t, nil, "89a")}
		if some := testing.AllocsPerRun(100, func() {
			var a answer
			_, _, _ = a.read(text, asked)
		}); some > 0 {
			t.Errorf("%s: %v allocations", one.name, some)
		}
	}
}

func BenchmarkAnswer(b *testing.B) {
	text := []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 39\r\n\r\n" + strings.Repeat("x", 39))
	asked := &request{}
	for b.Loop() {
		var a answer
		_, _, _ = a.read(text, asked)
	}
}
