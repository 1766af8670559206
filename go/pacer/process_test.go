// Tests of the process: real connections, real time, and how it ends. They assert what holds on any machine,
// however slow it is.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The tests start themselves: as pacer, or as a server that can be stopped.
func TestMain(m *testing.M) {
	switch os.Getenv("PACER_TEST_AS") {
	case "pacer":
		// On a slow machine processes begin at any time.
		startsApart = 60
		main()
	case "server":
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		fmt.Println(listener.Addr())
		_ = http.Serve(listener, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	default:
		os.Exit(m.Run())
	}
}

func itself(as string, arguments ...string) *exec.Cmd {
	command := exec.Command(os.Args[0], arguments...)
	command.Env = append(os.Environ(), "PACER_TEST_AS="+as)
	return command
}

// line is a line of a second, as a reader of standard output has it.
type line struct {
	Second        int
	Length        float64 `json:"length_s"`
	Due, Sent, Ok int
	SentIn        [sliceCount]int `json:"sent_in_10ms"`
	HTTPErrors    int             `json:"http_errors"`
	Statuses      map[string]int
	Unexpected    [][3]int
	SocketErrors  map[string]int `json:"socket_errors"`
	ConnectFailed map[string]int `json:"connect_failed"`
	Timeouts      int
	Unfinished    int
	Connections   int
	Reopened      int
	Raw, Late     told
	Failed        told
	Corrected     *told
	Ended         string
	Run           float64 `json:"run_s"`
	CPU           float64 `json:"cpu_s"`
	OnCPU         *int64  `json:"run_us"`
	Queued        *int64  `json:"runq_us"`
}

type told struct {
	Sum     int64 `json:"sum_us"`
	Max     int64 `json:"max_us"`
	Buckets [][2]int64
}

func (h *told) count(fromUs int64) int {
	sum := int64(0)
	for _, one := range h.Buckets {
		if one[0] >= fromUs {
			sum += one[1]
		}
	}
	return int(sum)
}

// outcome is what a process told: its seconds, their sum, and the last line.
type outcome struct {
	seconds  []line
	sum      line
	last     line
	status   int
	problems string
}

// soFar is what the whole lines of standard output tell.
func soFar(t *testing.T, output string) outcome {
	t.Helper()
	var o outcome
	lines := strings.Split(output[:strings.LastIndex(output, "\n")+1], "\n")
	lines = lines[:len(lines)-1]
	if len(lines) == 0 {
		return o
	}
	if !strings.HasPrefix(lines[0], `{"pacer":"1.6.0","format":2,"unix_s":`) {
		t.Fatalf("%.400s", output)
	}
	o.sum.Statuses, o.sum.SocketErrors, o.sum.ConnectFailed = map[string]int{}, map[string]int{}, map[string]int{}
	for i, text := range lines[1:] {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		if l.Ended != "" {
			o.last = l
			if i != len(lines)-2 {
				t.Error("something follows the last line")
			}
			break
		}
		inSlices := 0
		for _, count := range l.SentIn {
			inSlices += count
		}
		if l.Second != i || inSlices != l.Sent || l.Raw.count(0) != l.Ok || l.Failed.count(0) != l.HTTPErrors || l.Late.count(0) != l.Sent || l.Corrected != nil && l.Corrected.count(0) != l.Raw.count(0) {
			t.Errorf("%.300s", text)
		}
		o.seconds = append(o.seconds, l)
		o.sum.Due, o.sum.Sent, o.sum.Ok, o.sum.HTTPErrors, o.sum.Timeouts = o.sum.Due+l.Due, o.sum.Sent+l.Sent, o.sum.Ok+l.Ok, o.sum.HTTPErrors+l.HTTPErrors, o.sum.Timeouts+l.Timeouts
		o.sum.Length += l.Length
		o.sum.Reopened += l.Reopened
		o.sum.Unexpected = append(o.sum.Unexpected, l.Unexpected...)
		for _, both := range [][2]map[string]int{{o.sum.Statuses, l.Statuses}, {o.sum.SocketErrors, l.SocketErrors}, {o.sum.ConnectFailed, l.ConnectFailed}} {
			for key, count := range both[1] {
				both[0][key] += count
			}
		}
	}
	return o
}

// understand reads all of standard output, and fails unless every request is in one class.
func understand(t *testing.T, output []byte) outcome {
	t.Helper()
	o := soFar(t, string(output))
	if len(o.seconds) == 0 || o.last.Ended == "" {
		t.Fatalf("%.400s", output)
	}
	s := o.sum
	came, ended := s.Due, s.Ok+s.HTTPErrors+s.Timeouts+o.last.Unfinished
	for cause, count := range s.SocketErrors {
		ended += count
		if o.last.SocketErrors[cause] != count {
			t.Error("the last line does not tell the sum of", cause)
		}
	}
	if o.seconds[0].Corrected == nil {
		came = s.Sent
	}
	if came != ended || o.last.Sent != s.Sent || o.last.Ok != s.Ok || o.last.HTTPErrors != s.HTTPErrors || o.last.Due != s.Due || o.last.Timeouts != s.Timeouts ||
		o.last.Unfinished != o.seconds[len(o.seconds)-1].Unfinished || o.last.Run-s.Length > 1e-6 || s.Length-o.last.Run > 1e-6 {
		t.Errorf("%d came, %d ended: %+v, %+v", came, ended, s, o.last)
	}
	return o
}

// ran runs pacer with a load to its end.
func ran(t *testing.T, change map[string]any) outcome {
	t.Helper()
	var output, problems bytes.Buffer
	command := itself("pacer", "-")
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(text(change)), &output, &problems
	if err := command.Run(); err != nil {
		t.Fatal(err, problems.String())
	}
	if problems.Len() > 0 {
		t.Error(problems.String())
	}
	return understand(t, output.Bytes())
}

// ranUntil runs pacer with a load until enough is seen, however long a slow machine takes for it. What is never seen is
// missing in the outcome.
func ranUntil(t *testing.T, change map[string]any, enough func(outcome) bool) outcome {
	t.Helper()
	change["window_s"] = 600
	command, output := startedOn(t, change, toFile(t))
	for end := time.Now().Add(patience); !enough(soFar(t, contents(output))) && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	_ = command.Process.Signal(syscall.SIGINT)
	_ = command.Wait()
	return understand(t, []byte(contents(output)))
}

func answered(o outcome) bool { return o.sum.Ok > 0 }

// short is a closed load of a second on one address.
func short(url string, change map[string]any) map[string]any {
	all := map[string]any{"arrivals": closed, "rate": nil, "connections": 4, "warmup_s": 0, "window_s": 1, "requests": []any{wish(map[string]any{"url": url})}}
	for key, value := range change {
		all[key] = value
	}
	return all
}

func TestBodiesOfEveryKind(t *testing.T) {
	t.Parallel()
	var posted, heads, wrong atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/long":
			w.Header().Set("Content-Length", fmt.Sprint(3<<20))
			_, _ = w.Write(make([]byte, 3<<20))
		case "/chunks":
			for range 5 {
				_, _ = w.Write(make([]byte, 70000))
				w.(http.Flusher).Flush()
			}
		case "/post":
			posted.Add(1)
			if r.Method != "POST" || r.Header.Get("X-A") != "b" || len(body) != 1<<20 {
				wrong.Add(1)
			}
			w.WriteHeader(201)
		case "/head":
			heads.Add(1)
			w.WriteHeader(500)
		}
	}))
	defer server.Close()
	o := ranUntil(t, short(server.URL, map[string]any{"requests": []any{
		wish(map[string]any{"url": server.URL + "/long"}), wish(map[string]any{"url": server.URL + "/chunks"}),
		wish(map[string]any{"url": server.URL + "/post", "method": "POST", "headers": map[string]string{"X-A": "b"}, "body": strings.Repeat("x", 1<<20), "weight": 3}),
		wish(map[string]any{"url": server.URL + "/head", "method": "HEAD", "weight": 3}),
	}}), func(o outcome) bool {
		return o.sum.Statuses["200"] > 0 && o.sum.Statuses["201"] > 0 && o.sum.Statuses["500"] > 0
	})
	if o.sum.Statuses["200"] == 0 || o.sum.Statuses["201"] == 0 || o.sum.Statuses["500"] == 0 || o.sum.HTTPErrors != o.sum.Statuses["500"] || len(o.sum.SocketErrors) > 0 || wrong.Load() > 0 {
		t.Errorf("%+v", o.sum)
	}
	if sent := int(posted.Load()); o.sum.Statuses["201"] > sent || o.sum.Statuses["201"] < sent-4 {
		t.Error("the server counted", sent, "and pacer", o.sum.Statuses["201"])
	}
}

func TestValuesOfHeadersAreSentAndNotTold(t *testing.T) {
	t.Parallel()
	const secret = "Bearer 5ecret"
	var wrong atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != secret {
			wrong.Add(1)
		}
	}))
	defer server.Close()
	secretly := map[string]string{"Authorization": secret}
	command := itself("pacer", "-")
	command.Stdin = bytes.NewReader(text(short(server.URL, map[string]any{"requests": []any{wish(map[string]any{"url": server.URL, "headers": secretly})}})))
	output, err := command.CombinedOutput()
	if err != nil || wrong.Load() > 0 || understand(t, output).sum.Ok == 0 {
		t.Errorf("%v, %d requests without the header: %s", err, wrong.Load(), output)
	}
	if bytes.Contains(output, []byte("5ecret")) || !bytes.Contains(output, []byte("Authorization")) {
		t.Errorf("%s", output)
	}
	secretly["Authorization"] += "\r\n"
	command = itself("pacer", "-")
	command.Stdin = bytes.NewReader(text(short(server.URL, map[string]any{"requests": []any{wish(map[string]any{"url": server.URL, "headers": secretly})}})))
	if output, err = command.CombinedOutput(); err == nil || bytes.Contains(output, []byte("5ecret")) {
		t.Errorf("%v: %s", err, output)
	}
}

// plain is a server that does something with each connection. It returns its address and what it accepted.
func plain(t *testing.T, address string, with func(*net.TCPConn, *bufio.Reader)) (string, *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	var accepted atomic.Int64
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			go func() {
				with(c.(*net.TCPConn), bufio.NewReader(c))
				_ = c.Close()
			}()
		}
	}()
	return listener.Addr().String(), &accepted
}

func gets(reader *bufio.Reader) bool {
	_, err := http.ReadRequest(reader)
	return err == nil
}

// A server may end the connection after each answer, in every way that HTTP has. Each answer counts, nothing is
// an error, and the connection is there again at once: more often than a pause would allow.
func TestServersThatDoNotKeepConnections(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"told":     "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\na",
		"HTTP/1.0": "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
		"until":    "HTTP/1.0 200 OK\r\n\r\nabc",
		"not told": "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
	} {
		t.Run(name, func(t *testing.T) {
			address, accepted := plain(t, "127.0.0.1:0", func(c *net.TCPConn, reader *bufio.Reader) {
				if gets(reader) {
					_, _ = io.WriteString(c, answer)
				}
			})
			// Where it is not told, a request may be on its way when the end comes. So there each has 20 ms.
			change := map[string]any{"connections": 1}
			if name == "not told" {
				change = map[string]any{"connections": 1, "arrivals": constant, "rate": 50}
			}
			// A pause lasts long enough that a slow machine answers often meanwhile.
			often := func(o outcome) bool { return o.sum.Ok > int(o.sum.Length/reopenPause.Seconds())+1 }
			o := ranUntil(t, short("http://"+address, change), often)
			if !often(o) || o.sum.Ok > int(accepted.Load()) || name != "not told" && len(o.sum.SocketErrors) > 0 || len(o.sum.ConnectFailed) > 0 ||
				o.sum.Reopened < o.sum.Ok-1 || o.sum.Reopened > int(accepted.Load()) {
				t.Errorf("%+v of %d", o.sum, accepted.Load())
			}
		})
	}
}

// Several hosts get requests by their weights, and connections too.
func TestSeveralHosts(t *testing.T) {
	t.Parallel()
	address := func(status int) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(server.Close)
		return server.URL
	}
	o := ran(t, short("", map[string]any{"arrivals": constant, "rate": 400, "connections": 8, "requests": []any{
		wish(map[string]any{"url": address(201), "weight": 3}), wish(map[string]any{"url": address(202), "weight": 1}),
	}}))
	// 400 draws at 3 in 4: 300, and a deviation of 9.
	if first, second := o.sum.Statuses["201"], o.sum.Statuses["202"]; first > 340 || second > 140 || first+second+o.last.Unfinished != 400 {
		t.Errorf("%+v", o.sum)
	}
	if o.last.Unfinished == 0 && o.sum.Statuses["201"] < 260 {
		t.Errorf("%+v", o.sum)
	}
}

// What is lost is told by its cause. Attempts are made at most once a pause by each connection.
func TestConnectionsThatBreak(t *testing.T) {
	t.Parallel()
	most := func(o outcome) int { return 4 * (int(o.last.Run/reopenPause.Seconds()) + 1) }
	for cause, with := range map[string]func(*net.TCPConn, *bufio.Reader){
		"closed": func(c *net.TCPConn, reader *bufio.Reader) {
			gets(reader)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
		},
		"reset": func(c *net.TCPConn, reader *bufio.Reader) {
			gets(reader)
			_ = c.SetLinger(0)
		},
		"protocol": func(c *net.TCPConn, reader *bufio.Reader) {
			gets(reader)
			_, _ = io.WriteString(c, "220 mail\r\n")
			gets(reader)
		},
	} {
		t.Run(cause, func(t *testing.T) {
			address, _ := plain(t, "127.0.0.1:0", with)
			o := ranUntil(t, short("http://"+address, nil), func(o outcome) bool { return o.sum.SocketErrors[cause] > 0 })
			if count := o.sum.SocketErrors[cause]; count == 0 || len(o.sum.SocketErrors) > 1 || o.sum.Ok > 0 || count > most(o) {
				t.Errorf("%+v", o.sum)
			}
		})
	}
	t.Run("after an answer", func(t *testing.T) {
		address, _ := plain(t, "127.0.0.1:0", func(c *net.TCPConn, reader *bufio.Reader) {
			gets(reader)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
			gets(reader)
			_ = c.SetLinger(0)
		})
		// It is opened again at once, and not at the pace of the start.
		often := func(o outcome) bool { return o.sum.SocketErrors["reset"] > int(o.sum.Length)+1 }
		o := ranUntil(t, short("http://"+address, map[string]any{"connections": 1, "connect_per_s": 1}), often)
		if count := o.sum.SocketErrors["reset"]; !often(o) || o.sum.Reopened < count-1 {
			t.Errorf("%+v", o.sum)
		}
	})
	// A proxy with a limit accepts, and closes what it has no room for before anything was asked.
	t.Run("before a request", func(t *testing.T) {
		var taken atomic.Int64
		address, _ := plain(t, "127.0.0.1:0", func(c *net.TCPConn, reader *bufio.Reader) {
			if taken.Add(1) > 1 {
				return
			}
			for gets(reader) {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
			}
		})
		lost := func(o outcome) int { return o.sum.ConnectFailed["closed"] + o.sum.ConnectFailed["reset"] }
		o := ranUntil(t, short("http://"+address, map[string]any{"arrivals": constant, "rate": 5, "connections": 4}), func(o outcome) bool { return lost(o) >= 3 })
		if count := lost(o); count < 3 || count > most(o) {
			t.Errorf("%+v", o.sum)
		}
	})
	t.Run("refused", func(t *testing.T) {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := listener.Addr().String()
		_ = listener.Close()
		// Nor is there an attempt before its turn.
		if o := ran(t, short("http://"+address, map[string]any{"connections": 50, "connect_per_s": 20})); o.sum.ConnectFailed["refused"] > 21 {
			t.Errorf("%+v", o.sum)
		}
		o := ranUntil(t, short("http://"+address, map[string]any{"arrivals": constant, "rate": 100}), func(o outcome) bool { return o.sum.ConnectFailed["refused"] >= 4 })
		if count := o.sum.ConnectFailed["refused"]; count < 4 || count > most(o) || o.sum.Sent > 0 || o.last.Due < 100 || o.last.Unfinished != o.last.Due {
			t.Errorf("%+v", o.sum)
		}
	})
}

// A server that closes what is idle takes no request with it.
func TestIdleConnectionsThatAreClosed(t *testing.T) {
	t.Parallel()
	address, accepted := plain(t, "127.0.0.1:0", func(c *net.TCPConn, reader *bufio.Reader) {
		if gets(reader) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
			time.Sleep(50 * time.Millisecond)
		}
	})
	o := ranUntil(t, short("http://"+address, map[string]any{"arrivals": constant, "rate": 2, "connections": 1}), func(o outcome) bool { return o.sum.Ok > 1 })
	if accepted.Load() < 2 || o.sum.Ok < 2 || len(o.sum.ConnectFailed) > 0 {
		t.Errorf("%+v", o.sum)
	}
}

// A connection that sends once is held: idle after its answer, or with its request in flight.
func TestConnectionsThatSendOnceAreHeld(t *testing.T) {
	t.Parallel()
	for _, answers := range []bool{true, false} {
		address, accepted := plain(t, "127.0.0.1:0", func(c *net.TCPConn, reader *bufio.Reader) {
			for gets(reader) {
				if answers {
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
				}
			}
		})
		o := ranUntil(t, short("http://"+address, map[string]any{"once": true, "connections": 9}), func(o outcome) bool {
			return len(o.seconds) > 3 && o.sum.Sent == 9
		})
		last := o.seconds[len(o.seconds)-1]
		if o.sum.Sent != 9 || last.Connections != 9 || accepted.Load() != 9 || o.sum.Reopened > 0 {
			t.Errorf("answers %v: %+v", answers, o.sum)
		}
		if ok, left := o.sum.Ok, o.last.Unfinished; answers && ok != 9 || !answers && left != 9 {
			t.Error("answers", answers, ok, left)
		}
	}
}

// One that is lost is opened again, and sends again: so it shows.
func TestAHeldConnectionThatIsLostSendsAgain(t *testing.T) {
	t.Parallel()
	address, _ := plain(t, "127.0.0.1:0", func(c *net.TCPConn, reader *bufio.Reader) {
		if gets(reader) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
		}
	})
	o := ranUntil(t, short("http://"+address, map[string]any{"once": true, "connections": 1}), func(o outcome) bool { return o.sum.Sent > 1 })
	if o.sum.Sent < 2 || o.sum.Reopened == 0 {
		t.Errorf("%+v", o.sum)
	}
}

// Heads and chunks may come in pieces.
func TestAnswersInPieces(t *testing.T) {
	t.Parallel()
	address, _ := plain(t, "127.0.0.1:0", func(c *net.TCPConn, reader *bufio.Reader) {
		for gets(reader) {
			for _, piece := range []string{"HT", "TP/1.1 200 OK\r\nTransfer-Enco", "ding: chunked\r", "\n\r\n1", "0\r\n0123", "456789abcdef\r\n0", "\r\n", "\r\n"} {
				_, _ = io.WriteString(c, piece)
				time.Sleep(3 * time.Millisecond)
			}
		}
	})
	if o := ranUntil(t, short("http://"+address, nil), answered); o.sum.Ok == 0 || len(o.sum.SocketErrors) > 0 || len(o.sum.ConnectFailed) > 0 {
		t.Errorf("%+v", o.sum)
	}
}

func TestNamesAndIPv6(t *testing.T) {
	t.Parallel()
	for listen, host := range map[string]string{"[::1]:0": "[::1]", "127.0.0.1:0": "localhost"} {
		// A machine may have no IPv6.
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			address, _ := plain(t, listen, func(c *net.TCPConn, reader *bufio.Reader) {
				for gets(reader) {
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
				}
			})
			_, port, _ := net.SplitHostPort(address)
			o := ranUntil(t, short("http://"+host+":"+port, nil), answered)
			if o.sum.Ok == 0 || len(o.sum.ConnectFailed) > 0 {
				t.Errorf("%+v", o.sum)
			}
		})
	}
}

func TestHTTPS(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(append(body, make([]byte, 200_000)...))
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	many := []any{wish(map[string]any{"url": server.URL}), wish(map[string]any{"url": server.URL, "method": "POST", "body": strings.Repeat("y", 500_000)})}
	o := ranUntil(t, short(server.URL, map[string]any{"insecure": true, "requests": many}), answered)
	if asked := int(asked.Load()); o.sum.Ok == 0 || o.sum.Ok > asked || o.sum.Ok < asked-4 || len(o.sum.SocketErrors) > 0 || len(o.sum.ConnectFailed) > 0 {
		t.Errorf("%d were asked: %+v", asked, o.sum)
	}
	failed := func(why string) func(outcome) bool {
		return func(o outcome) bool { return o.sum.ConnectFailed[why] >= 4 }
	}
	if o := ranUntil(t, short(server.URL, nil), failed("certificate")); o.sum.ConnectFailed["certificate"] < 4 || o.sum.Sent > 0 {
		t.Errorf("%+v", o.sum)
	}
	address, _ := plain(t, "127.0.0.1:0", func(c *net.TCPConn, reader *bufio.Reader) {
		_, _ = io.WriteString(c, "no TLS here\r\n")
	})
	if o := ranUntil(t, short("https://"+address, nil), failed("tls")); o.sum.ConnectFailed["tls"] < 4 || o.sum.Sent > 0 {
		t.Errorf("%+v", o.sum)
	}
}

// The logs that HdrHistogram's tools read have the seconds and the values of the lines.
func TestLogsAreThoseOfTheLines(t *testing.T) {
	t.Parallel()
	var count atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(3 * time.Millisecond)
		if count.Add(1)%5 == 0 {
			w.WriteHeader(503)
		}
	}))
	defer server.Close()
	folder := t.TempDir()
	words := short(server.URL, map[string]any{"arrivals": poisson, "rate": 300, "connections": 20, "window_s": 2.5, "hlog": folder, "loops": 2})
	o := ran(t, words)
	if o.sum.HTTPErrors == 0 {
		t.Error("nothing failed")
	}
	// Both loops are in the lines.
	if due := len(times(read(t, words), 0, 1, seconds(2.5))); o.sum.Due != due {
		t.Error(o.sum.Due, "of", due, "are told")
	}
	for name, of := range map[string]func(line) told{
		"raw": func(l line) told { return l.Raw }, "failed": func(l line) told { return l.Failed },
		"late": func(l line) told { return l.Late }, "corrected": func(l line) told { return *l.Corrected },
	} {
		file, err := os.Open(filepath.Join(folder, name+".hlog"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		reader := hdrhistogram.NewHistogramLogReader(file)
		for i, l := range o.seconds {
			h, err := reader.NextIntervalHistogram()
			if err != nil || h == nil {
				t.Fatal(name, i, err)
			}
			lines := of(l)
			if length := float64(h.EndTimeMs()-h.StartTimeMs()) / 1000; length < l.Length-.01 || length > l.Length+.01 || int(h.TotalCount()) != lines.count(0) {
				t.Errorf("%s of second %d: %d values in %v s", name, i, h.TotalCount(), length)
			}
			// By each value of a line as many are counted in the log, whose buckets are a thousandth wide.
			for _, one := range lines.Buckets {
				seen := int64(0)
				for _, bar := range h.Distribution() {
					if bar.From <= one[0]*1000 && one[0]*1000 <= bar.To {
						seen = bar.Count
						if bar.To-bar.From > max(1000, bar.To/1000) {
							t.Error("a bucket from", bar.From, "to", bar.To)
						}
					}
				}
				if seen < one[1] {
					t.Errorf("%s of second %d: %d of %d µs, and %d in the log", name, i, one[1], one[0], seen)
				}
			}
		}
		if h, err := reader.NextIntervalHistogram(); h != nil || err != nil {
			t.Error("more seconds in the log", err)
		}
	}
}

// In real time pacer sees what a server logs of itself, plus the way there and back. That is within 1 % or 2 ms,
// unless the machine itself is late: a timer beside it tells by how much. It does not tell how long a request stood
// in its socket before the server got a CPU to read it. So a busy machine has some tries; what is wrong in pacer
// would be so in all of them.
func TestTheRefereeAgreesInRealTime(t *testing.T) {
	for try := 1; ; try++ {
		problems := refereed(t)
		if len(problems) == 0 {
			return
		}
		t.Log(try, problems)
		if try == 5 {
			t.Fatal("no try of", try, "agreed")
		}
	}
}

// refereed is what of one run does not agree with its server's own log.
func refereed(t *testing.T) (problems []string) {
	var mu sync.Mutex
	var truth []time.Duration
	script := latencies()
	address, _ := plain(t, "127.0.0.1:0", func(c *net.TCPConn, reader *bufio.Reader) {
		for gets(reader) {
			from := time.Now()
			mu.Lock()
			takes := script(0, 0)
			mu.Unlock()
			time.Sleep(takes)
			mu.Lock()
			truth = append(truth, time.Since(from))
			mu.Unlock()
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
		}
	})
	var lag time.Duration
	stop := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-stop:
				return
			default:
				from := time.Now()
				time.Sleep(time.Millisecond)
				lag = max(lag, time.Since(from)-time.Millisecond)
			}
		}
	}()
	o := ran(t, short("http://"+address, map[string]any{"arrivals": poisson, "rate": 1500, "connections": 300, "window_s": 2}))
	close(stop)
	<-watched
	var seen histogram
	for _, l := range o.seconds {
		for _, one := range l.Raw.Buckets {
			seen.counts[bucket(uint64(one[0]))] += uint32(one[1])
			seen.count += int(one[1])
			seen.max = max(seen.max, time.Duration(one[0])*time.Microsecond)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(truth)
	if seen.count == 0 || seen.count > len(truth) {
		return []string{fmt.Sprint(seen.count, " were seen of ", len(truth))}
	}
	for _, percentile := range []float64{.5, .75, .9, .95, .99} {
		// The server has answered a few more than pacer still counted: those that took longest at its end.
		exact, at := truth[int(percentile*float64(len(truth)))], seen.at(percentile)
		if at > exact+max(exact/100, 2*time.Millisecond)+2*lag {
			problems = append(problems, fmt.Sprintf("p%v: %v, and %v in truth; the machine was late by %v at most", 100*percentile, at, exact, lag))
		}
		// Whichever those are, what pacer counted took at least as long as the same share of the shortest, however late the
		// machine is: it begins before the server reads and ends after it writes.
		least := truth[int(math.Ceil(percentile*float64(seen.count)))-1]
		if at < least-max(least/100, 2*time.Millisecond) {
			problems = append(problems, fmt.Sprintf("p%v: %v, and at least %v in truth", 100*percentile, at, least))
		}
	}
	return problems
}

// A real server that is stopped for 3 s. Who was due meanwhile waited for it, and is counted so, however few
// connections there are. A slow machine only makes it more.
func TestAServerThatIsStopped(t *testing.T) {
	t.Parallel()
	server := itself("server")
	said, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Wait()
	defer server.Process.Kill()
	address, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	command, output := startedOn(t, short("http://"+strings.TrimSpace(address), map[string]any{"arrivals": constant, "rate": 200, "connections": 10, "window_s": 600}), toFile(t))
	_ = server.Process.Signal(syscall.SIGSTOP)
	from := time.Now()
	time.Sleep(3 * time.Second)
	lasted := time.Since(from)
	_ = server.Process.Signal(syscall.SIGCONT)
	o := interruptedLater(t, command, output)
	for _, least := range []time.Duration{lasted / 4, lasted / 2, lasted * 9 / 10} {
		seen := o.last.Unfinished
		for _, l := range o.seconds {
			seen += l.Corrected.count(least.Microseconds())
		}
		if due := int((lasted - least).Seconds() * 200); seen < due-1 {
			t.Errorf("%d waited for %v, and %d were due so long before its end", seen, least, due)
		}
	}
}

// That pacer itself was stopped is no latency of the server's: not from the sending on, but from when a request was due. Of a
// closed load it is time that a connection waited for pacer.
func TestPacerThatIsStopped(t *testing.T) {
	t.Parallel()
	t.Run(constant, func(t *testing.T) {
		t.Parallel()
		o, long, lasts := stopped(t, map[string]any{"arrivals": constant, "rate": 200, "connections": 100, "window_s": 600})
		waited := o.last.Unfinished
		for _, l := range o.seconds {
			waited += l.Corrected.count((lasts / 2).Microseconds())
		}
		if long > 0 || waited < int((lasts/2).Seconds()*200)-1 {
			t.Errorf("%d more answers took long than of the server's; %d requests waited", long, waited)
		}
	})
	t.Run(closed, func(t *testing.T) {
		t.Parallel()
		o, long, lasts := stopped(t, map[string]any{"arrivals": closed, "rate": nil, "connections": 100, "window_s": 600})
		waited := 0
		for _, l := range o.seconds {
			waited += l.Late.count((lasts / 2).Microseconds())
		}
		if long > 0 || waited < 90 {
			t.Errorf("%d more answers took long than of the server's; %d of 100 connections waited for pacer", long, waited)
		}
	})
}

// stopped is what pacer told of a server that takes 200 ms, when pacer was stopped for a time: how many more answers took as
// long as that than the server saw, and the time.
func stopped(t *testing.T, change map[string]any) (outcome, int, time.Duration) {
	t.Helper()
	const takes, lasts = 200 * time.Millisecond, 1500 * time.Millisecond
	var slow atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		from := time.Now()
		time.Sleep(takes)
		if time.Since(from) > 2*takes {
			slow.Add(1)
		}
	}))
	defer server.Close()
	command, output := startedOn(t, short(server.URL, change), toFile(t))
	_ = command.Process.Signal(syscall.SIGSTOP)
	time.Sleep(lasts)
	_ = command.Process.Signal(syscall.SIGCONT)
	o := interruptedLater(t, command, output)
	long := -int(slow.Load())
	for _, l := range o.seconds {
		long += l.Raw.count((lasts - takes).Microseconds())
	}
	return o, long, lasts
}

// started is pacer on a server that answers after 20 ms, with standard output in a file, when it has told a second.
func started(t *testing.T, wrap func(load, output string) *exec.Cmd) (*exec.Cmd, string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(20 * time.Millisecond) }))
	t.Cleanup(server.Close)
	return startedOn(t, short(server.URL, map[string]any{"window_s": 600}), wrap)
}

func startedOn(t *testing.T, change map[string]any, wrap func(load, output string) *exec.Cmd) (*exec.Cmd, string) {
	t.Helper()
	load, output := filepath.Join(t.TempDir(), "load.json"), filepath.Join(t.TempDir(), "output")
	if err := os.WriteFile(load, text(change), 0o600); err != nil {
		t.Fatal(err)
	}
	command := wrap(load, output)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	within(t, "a second is told", func() bool { return strings.Count(contents(output), "\n") > 1 })
	return command, output
}

// interruptedLater is what pacer told, when it was interrupted after two more seconds.
func interruptedLater(t *testing.T, command *exec.Cmd, output string) outcome {
	t.Helper()
	told := strings.Count(contents(output), "\n")
	within(t, "2 more seconds are told", func() bool { return strings.Count(contents(output), "\n") > told+1 })
	_ = command.Process.Signal(syscall.SIGINT)
	_ = command.Wait()
	return understand(t, []byte(contents(output)))
}

// toFile has pacer write to the file itself.
func toFile(t *testing.T) func(load, output string) *exec.Cmd {
	return func(load, output string) *exec.Cmd {
		file, err := os.Create(output)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		command := itself("pacer", load)
		command.Stdout = file
		return command
	}
}

func contents(name string) string {
	text, _ := os.ReadFile(name)
	return string(text)
}

func within(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !happened(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("in vain: ", what)
		}
	}
}

func TestSignalsEndIt(t *testing.T) {
	t.Parallel()
	for signal, status := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		command, output := started(t, toFile(t))
		_ = command.Process.Signal(signal)
		_ = command.Wait()
		o := understand(t, []byte(contents(output)))
		if command.ProcessState.ExitCode() != status || o.last.Ended != "interrupted" || o.sum.Ok == 0 || o.last.Run >= 600 || o.last.CPU <= 0 {
			t.Errorf("%v: %d, %+v", signal, command.ProcessState.ExitCode(), o.last)
		}
	}
}

// A process whose parent died ends by itself.
func TestTheParentsDeathEndsIt(t *testing.T) {
	t.Parallel()
	shell, output := started(t, func(load, output string) *exec.Cmd {
		command := itself("pacer")
		command.Path, command.Args = "/bin/sh", []string{"sh", "-c", `"$1" "$2" >"$3" & wait`, "sh", os.Args[0], load, output}
		return command
	})
	_ = shell.Process.Kill()
	_ = shell.Wait()
	within(t, "the last line comes", func() bool { return strings.Contains(contents(output), `"ended"`) })
	if o := understand(t, []byte(contents(output))); o.last.Ended != "orphaned" || o.sum.Ok == 0 {
		t.Errorf("%+v", o.last)
	}
}

func TestWrongUseIsOneLine(t *testing.T) {
	t.Parallel()
	fine := string(text(nil))
	for _, one := range []struct {
		arguments []string
		input     string
		status    int
		part      string
	}{
		{nil, "", 2, "one argument is allowed"},
		{[]string{"a", "b"}, "", 2, "one argument is allowed"},
		{[]string{"/nowhere.json"}, "", 2, "no such file"},
		{[]string{"-"}, strings.Replace(fine, `"connections":10`, `"connections":0`, 1), 2, "connections: a whole number"},
		{[]string{"-"}, strings.Replace(fine, `"connections":10`, `"connections":10000000000`, 1), 2, "connections: at most"},
		{[]string{"-"}, strings.Replace(fine, "127.0.0.1:1", "nobody.invalid", 1), 1, "nobody.invalid cannot be resolved"},
	} {
		var output, problems bytes.Buffer
		command := itself("pacer", one.arguments...)
		command.Stdin, command.Stdout, command.Stderr = strings.NewReader(one.input), &output, &problems
		_ = command.Run()
		said := problems.String()
		if command.ProcessState.ExitCode() != one.status || output.Len() > 0 || strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, "pacer: ") || !strings.Contains(said, one.part) {
			t.Errorf("%v: %d %q %q", one.arguments, command.ProcessState.ExitCode(), said, output.String())
		}
	}
	// Nobody reads what it tells.
	reads, writes, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = reads.Close()
	var problems bytes.Buffer
	command := itself("pacer", "-")
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(fine), writes, &problems
	_ = command.Run()
	if command.ProcessState.ExitCode() != 1 || problems.String() != "pacer: write /dev/stdout: broken pipe\n" {
		t.Errorf("%d %q", command.ProcessState.ExitCode(), problems.String())
	}
	said, err := itself("pacer", "--version").Output()
	if err != nil || string(said) != "pacer 1.6.0\n" {
		t.Errorf("%q %v", said, err)
	}
}
