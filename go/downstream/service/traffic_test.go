package service

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

const (
	answered = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 37\r\n" +
		"%s\r\n" + `{"service":"downstream","delay_ms":0}`
	healthy   = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n%s\r\n" + `{"status":"up"}`
	notFound  = "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 46\r\n%s\r\n" + `{"error":"not found; there are / and /health"}`
	onlyGet   = "HTTP/1.1 405 Method Not Allowed\r\nContent-Type: application/json\r\nContent-Length: 31\r\nAllow: GET\r\n%s\r\n" + `{"error":"only GET is allowed"}`
	badAnswer = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 26\r\nConnection: close\r\n\r\nError when parsing request"
	tooLong   = "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 22\r\nConnection: close\r\n\r\nToo big request header"
	goOn      = "HTTP/1.1 100 Continue\r\n\r\n"
	closing   = "Connection: close\r\n"
	keeping   = "Connection: keep-alive\r\n"
)

// exchanges are requests and the bytes that answer them: those of fasthttp's own server, which served
// this port before, but for the Date of its 400 and 431.
var exchanges = []struct{ name, sent, got string }{
	{"delayed", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", with(answered, "")},
	{"health", "GET /health HTTP/1.1\r\nHost: x\r\n\r\n", with(healthy, "")},
	{"told to close", "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", with(answered, closing)},
	{"health, told to close", "GET /health HTTP/1.1\r\nConnection: close\r\n\r\n", with(healthy, closing)},
	{"HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", with(answered, closing)},
	{"HTTP/1.0 kept alive", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", with(answered, keeping)},
	{"refused by HTTP/1.0", "DELETE / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", with(onlyGet, keeping)},
	{"HEAD", "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", strings.Split(with(onlyGet, ""), "{")[0]},
	{"a body", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", with(onlyGet, "")},
	{"a body of GET", "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", with(answered, "")},
	{"chunks", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", with(onlyGet, "")},
	{"expected to go on", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc", goOn + with(onlyGet, "")},
	{"another path", "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", with(notFound, "")},
	{"a query", "GET /?a=b HTTP/1.1\r\nHost: x\r\n\r\n", with(answered, "")},
	{"a path to be normalized", "GET /a/../health HTTP/1.1\r\nHost: x\r\n\r\n", with(healthy, "")},
	{"a whole URI", "GET http://x/health HTTP/1.1\r\nHost: x\r\n\r\n", with(healthy, "")},
	{"no host", "GET / HTTP/1.1\r\n\r\n", with(answered, "")},
	{"an upgrade", "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n", with(answered, "")},
	{"empty lines before", "\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n", with(healthy, "")},
	{"two at once", "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n", with(answered, "") + with(healthy, "")},
	{"nothing after the close", "GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", with(healthy, "") + with(answered, closing)},
	{"a bad host", "GET / HTTP/1.1\r\nHost: a b[\r\n\r\n", badAnswer},
	{"no HTTP", "\x00\x01\x02\r\n\r\n", badAnswer},
	{"a bad header", "GET / HTTP/1.1\r\nHost: x\r\na\x01b: c\r\n\r\n", badAnswer},
	{"a bad length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", badAnswer},
	{"two lengths", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na", badAnswer},
	{"a bad chunk", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", badAnswer},
	{"a body beyond the limit", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 65537\r\n\r\n", badAnswer},
	{"a long head", "GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 5000) + "\r\n\r\n", tooLong},
	{"a head that ends in the middle", "GET / HT", badAnswer},
	{"a body that ends in the middle", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc", badAnswer},
	{"only an empty line", "\r\n", ""},
	{"nothing", "", ""},
}

func with(answer, header string) string { return fmt.Sprintf(answer, header) }

// allOf is what the service sends until it closes the connection.
func (c *client) allOf() string {
	c.t.Helper()
	_ = c.socket.SetReadDeadline(time.Now().Add(10 * time.Second))
	all, err := io.ReadAll(c.socket)
	if err != nil {
		c.t.Fatalf("got %q, %v", all, err)
	}
	return string(all)
}

func (c *client) write(bytes string) {
	c.t.Helper()
	if _, err := io.WriteString(c.socket, bytes); err != nil {
		c.t.Fatal(err)
	}
}

// leave closes the sending half: all of what was sent is still to be answered.
func (c *client) leave() { _ = c.socket.(*net.TCPConn).CloseWrite() }

// reset ends the connection so that the other side learns of it at once.
func (c *client) reset() {
	_ = c.socket.(*net.TCPConn).SetLinger(0)
	_ = c.socket.Close()
}

func TestEveryRequestGetsItsBytes(t *testing.T) {
	s := started(t, 0, NewClock())
	for _, one := range exchanges {
		c := connect(t, s.HTTPPort)
		c.write(one.sent)
		c.leave()
		if got := c.allOf(); got != one.got {
			t.Errorf("%s:\n got %q\nwant %q", one.name, got, one.got)
		}
	}
}

func TestRequestsThatArriveByteByByteGetTheSame(t *testing.T) {
	s := started(t, 0, NewClock())
	for _, one := range exchanges {
		if len(one.sent) > 200 {
			continue
		}
		c := connect(t, s.HTTPPort)
		for i := range one.sent {
			// An answer may close the connection before the last byte.
			if _, err := io.WriteString(c.socket, one.sent[i:i+1]); err != nil {
				break
			}
			if i%8 == 0 {
				time.Sleep(100 * time.Microsecond)
			}
		}
		c.leave()
		_ = c.socket.SetReadDeadline(time.Now().Add(10 * time.Second))
		// What came after an answer that closes makes the kernel reset the connection.
		if got, err := io.ReadAll(c.socket); string(got) != one.got && (err == nil || !strings.HasPrefix(one.got, string(got))) {
			t.Errorf("%s:\n got %q, %v\nwant %q", one.name, got, err, one.got)
		}
	}
}

// Wherever the bytes are cut in two, the first part alone is no request, and both together are the same.
func TestARequestCutAnywhereIsTheSame(t *testing.T) {
	reader := newRequests(constant(0), 0)
	for _, one := range exchanges {
		sent := []byte(one.sent)
		whole, length, complete := reader.next(sent, false, true)
		if !complete || whole.closes {
			continue
		}
		want := string(whole.bytes)
		for cut := range length {
			if cut > 0 {
				if given, _, early := reader.next(sent[:cut], false, true); early {
					t.Fatalf("%s: %q alone got %q", one.name, sent[:cut], given.bytes)
				}
			}
			again, used, _ := reader.next(sent, false, true)
			if string(again.bytes) != want || used != length {
				t.Fatalf("%s after a cut at %d: %q, %d bytes of %d", one.name, cut, again.bytes, used, length)
			}
		}
	}
}

func TestARequestAllocatesNothing(t *testing.T) {
	reader := newRequests(constant(time.Second), 0)
	request := []byte("GET / HTTP/1.1\r\nHost: toxiproxy:8666\r\nUser-Agent: Java-http-client/25\r\nAccept: */*\r\n\r\n")
	if made := testing.AllocsPerRun(1000, func() {
		if given, used, _ := reader.next(request, false, false); !given.delayed || used != len(request) {
			t.Fatal(given, used)
		}
	}); made != 0 {
		t.Errorf("%v allocations", made)
	}
}

func TestPipelinedRequestsWaitOneAfterTheOther(t *testing.T) {
	clock := &heldClock{}
	s := started(t, 100*time.Millisecond, clock.told)
	c := connect(t, s.HTTPPort)
	c.send("GET /")
	c.send("GET /")
	for range 2 {
		waits(t, s, 1)
		clock.pass(s, 100*time.Millisecond)
		c.read()
	}
	waits(t, s, 0)
}

func TestAClientThatOnlyStopsSendingGetsItsAnswer(t *testing.T) {
	clock := &heldClock{}
	s := started(t, time.Second, clock.told)
	c := connect(t, s.HTTPPort)
	c.send("GET /")
	c.leave()
	waits(t, s, 1)
	clock.pass(s, time.Second)
	if got := c.allOf(); !strings.HasSuffix(got, `"delay_ms":1000}`) {
		t.Errorf("got %q", got)
	}
}

func TestTheAnswerOfAClientThatLeftGoesToNobody(t *testing.T) {
	clock := &heldClock{}
	s := started(t, time.Second, clock.told)
	for range 20 {
		gone := connect(t, s.HTTPPort)
		gone.send("GET /")
		waits(t, s, 1)
		gone.reset()
		waits(t, s, 0)
		// The next connection has the descriptor of the one that left.
		next := connect(t, s.HTTPPort)
		next.send("GET /health")
		next.read()
		clock.pass(s, 2*time.Second)
		next.send("GET /health")
		if _, _, body := next.read(); body != `{"status":"up"}` {
			t.Fatalf("got %s", body)
		}
		next.reset()
	}
	if told := s.traffic.counted(); told.answered != 0 {
		t.Errorf("%d answers were counted", told.answered)
	}
}

// The client sends on and on before it reads: the answers fill both sockets, and reading stops too.
func TestASlowReaderGetsEveryByte(t *testing.T) {
	const requests = 60_000
	s := started(t, 0, NewClock())
	c := connect(t, s.HTTPPort)
	_ = c.socket.(*net.TCPConn).SetReadBuffer(64 << 10)
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(c.socket, strings.Repeat("GET / HTTP/1.1\r\nHost: x\r\n\r\n", requests))
		c.leave()
		sent <- err
	}()
	// Others are served meanwhile.
	for range 20 {
		other := connect(t, s.HTTPPort)
		other.send("GET /")
		other.read()
	}
	_ = c.socket.SetReadDeadline(time.Now().Add(60 * time.Second))
	got, err := io.ReadAll(c.socket)
	if want := strings.Repeat(with(answered, ""), requests); err != nil || string(got) != want {
		t.Fatalf("%d bytes of %d, %v", len(got), len(want), err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

func TestAConnectionIsClosedWhenItIsIdleForTooLong(t *testing.T) {
	clock := &heldClock{}
	s := started(t, 60*time.Second, clock.told)
	used, unused, asking := connect(t, s.HTTPPort), connect(t, s.HTTPPort), connect(t, s.HTTPPort)
	used.send("GET /health")
	used.read()
	for s.traffic.counted().accepted < 3 {
		time.Sleep(time.Millisecond)
	}
	clock.pass(s, 50*time.Second)
	asking.send("GET /")
	waits(t, s, 1)
	clock.pass(s, idleTimeout-50*time.Second)
	for _, c := range []*client{used, unused} {
		if got := c.allOf(); got != "" {
			t.Errorf("got %q", got)
		}
	}
	clock.pass(s, 60*time.Second)
	asking.read()
}

func TestManyConnectionsAtOnceAreAllServed(t *testing.T) {
	const connections = 2000
	s := started(t, 50*time.Millisecond, NewClock())
	var all [connections]*client
	for i := range all {
		all[i] = connect(t, s.HTTPPort)
		all[i].send("GET /")
	}
	for _, c := range all {
		if status, _, _ := c.read(); status != 200 {
			t.Fatalf("got %d", status)
		}
	}
	if told := s.traffic.counted(); told.answered != connections || told.accepted != connections || told.inFlight != 0 {
		t.Errorf("counted %d answers, %d connections, %d in flight", told.answered, told.accepted, told.inFlight)
	}
}

// Seeded, so that a failure comes again.
func TestNoBytesBreakTheServiceOrKeepADescriptor(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 2026))
	s := started(t, time.Millisecond, NewClock())
	before := descriptors(t)
	for range 3000 {
		bytes := mutated(random)
		socket, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.HTTPPort))
		if err != nil {
			t.Fatal(err)
		}
		cut := random.IntN(len(bytes) + 1)
		// The service may have closed the connection already.
		_, _ = socket.Write(bytes[:cut])
		_, _ = socket.Write(bytes[cut:])
		c := &client{t: t, socket: socket}
		switch random.IntN(3) {
		case 0:
			c.reset()
		case 1:
			c.leave()
			_ = socket.SetReadDeadline(time.Now().Add(10 * time.Second))
			if _, err := io.Copy(io.Discard, socket); err != nil && os.IsTimeout(err) {
				t.Fatalf("neither an answer nor an end after %q", bytes)
			}
		}
		_ = socket.Close()
	}
	waits(t, s, 0)
	c := connect(t, s.HTTPPort)
	c.send("GET /")
	c.read()
	_ = c.socket.Close()
	for deadline := time.Now().Add(10 * time.Second); descriptors(t) > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d descriptors were open before, now %d", before, descriptors(t))
		}
	}
}

// mutated is one of the exchanges' requests, or two, with some bytes changed, left out or doubled.
func mutated(random *rand.Rand) []byte {
	sent := []byte(exchanges[random.IntN(len(exchanges))].sent + exchanges[random.IntN(len(exchanges))].sent)
	for range random.IntN(5) {
		if len(sent) == 0 {
			break
		}
		at := random.IntN(len(sent))
		switch random.IntN(4) {
		case 0:
			sent[at] = byte(random.UintN(256))
		case 1:
			sent = append(sent[:at], sent[at+1:]...)
		case 2:
			sent = append(sent[:at+1], sent[at:]...)
		case 3:
			sent = sent[:at]
		}
	}
	return bytes.Clone(sent)
}

func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

func TestStoppingWaitsForAnswersAndReleasesEveryDescriptor(t *testing.T) {
	before := descriptors(t)
	s := started(t, 300*time.Millisecond, NewClock())
	c := connect(t, s.HTTPPort)
	c.send("GET /")
	waits(t, s, 1)
	stopped := make(chan struct{})
	go func() {
		_ = s.traffic.Stop(t.Context())
		close(stopped)
	}()
	if status, _, _ := c.read(); status != 200 {
		t.Errorf("got %d", status)
	}
	<-stopped
	_ = c.socket.Close()
	// The management port's two (its socket, and Go's poller) stay until the test ends.
	if now := descriptors(t); now > before+4 {
		t.Errorf("%d descriptors before, %d after", before, now)
	}
}
