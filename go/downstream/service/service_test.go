package service

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"
)

// heldClock is a clock that stands still until the test lets time pass.
type heldClock struct{ now atomic.Int64 }

func (c *heldClock) told() time.Duration { return time.Duration(c.now.Load()) }

// pass lets time pass, and has the service look at the clock.
func (c *heldClock) pass(s *Service, time time.Duration) {
	c.now.Add(int64(time))
	s.traffic.wake()
}

// waits returns when so many requests wait for their answers.
func waits(t *testing.T, s *Service, count int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); s.traffic.counted().inFlight != count; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d requests wait, not %d", s.traffic.counted().inFlight, count)
		}
	}
}

// constant is a delay that is the same for all requests.
func constant(delay time.Duration) *Delay {
	d, err := NewDelay(fmt.Sprint(delay.Milliseconds()), fstest.MapFS{})
	if err != nil {
		panic(err)
	}
	return d
}

// started is a service on free ports that ends with the test.
func started(t *testing.T, delay time.Duration, clock Clock) *Service {
	t.Helper()
	s, err := Start(Settings{TokenSum: goodSum}, constant(delay), clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		deadline, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.Stop(deadline)
	})
	return s
}

// client speaks raw HTTP to a port.
type client struct {
	t      *testing.T
	socket net.Conn
	reader *bufio.Reader
}

func connect(t *testing.T, port int) *client {
	t.Helper()
	socket, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	return &client{t, socket, bufio.NewReader(socket)}
}

func (c *client) send(request string) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.socket, "%s HTTP/1.1\r\nHost: downstream\r\n\r\n", request); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) read() (status int, header http.Header, body string) {
	c.t.Helper()
	_ = c.socket.SetReadDeadline(time.Now().Add(10 * time.Second))
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	all, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(all)
}

// goodToken is the token of the tests, and goodSum its sum.
const goodToken, goodSum = "good token", "e48c98f3659af2696ef226c09b94eac9f60b0b474ed7e78bbf520ee70c462a69"

// manage calls the management port.
func manage(t *testing.T, s *Service, method, path, body string) (int, string) {
	t.Helper()
	return manageWith(t, s, goodToken, method, path, body)
}

func manageWith(t *testing.T, s *Service, token, method, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequest(method, fmt.Sprintf("http://127.0.0.1:%d%s", s.ManagementPort, path), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Lab-Token", token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	all, _ := io.ReadAll(response.Body)
	return response.StatusCode, strings.TrimSpace(string(all))
}

func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text+"\n", line+"\n") {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
}

func TestEveryRequestWaitsForTheDelayAndKeepsItsConnection(t *testing.T) {
	clock := &heldClock{}
	s := started(t, 200*time.Millisecond, clock.told)
	c, other := connect(t, s.HTTPPort), connect(t, s.HTTPPort)
	for range 3 {
		c.send("GET /")
		waits(t, s, 1)
		clock.pass(s, 200*time.Millisecond-1)
		for range 2 { // The loop has looked at the clock before it answers the second.
			other.send("GET /health")
			other.read()
		}
		waits(t, s, 1)
		clock.pass(s, 1)
		status, header, body := c.read()
		if status != 200 || body != `{"service":"downstream","delay_ms":200}` || header.Get("Content-Type") != "application/json" {
			t.Fatalf("got %d %v %s", status, header, body)
		}
	}
}

// The planted case connection-set-up (experiments/bottlenecks.toml) cuts connections after so many bytes.
func TestAnAnswerHas110Bytes(t *testing.T) {
	c := connect(t, started(t, 0, NewClock()).HTTPPort)
	c.send("GET /")
	_ = c.socket.SetReadDeadline(time.Now().Add(10 * time.Second))
	want := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 37\r\n\r\n" + `{"service":"downstream","delay_ms":0}`
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c.socket, got); err != nil || string(got) != want {
		t.Fatalf("got %q %v", got, err)
	}
	// A delay of 200 ms has two digits more.
	if len(want)+2 != 110 {
		t.Fatalf("%d bytes", len(want)+2)
	}
}

func TestAChangedDelayHoldsForRequestsThatArriveAfterIt(t *testing.T) {
	clock := &heldClock{}
	s := started(t, 200*time.Millisecond, clock.told)
	before, after := connect(t, s.HTTPPort), connect(t, s.HTTPPort)

	before.send("GET /")
	waits(t, s, 1)
	if status, body := manage(t, s, "PATCH", "/settings", `{"delay_ms": 300}`); status != 200 || !strings.HasPrefix(body, `{"delay_ms":300,"mean_ms":300,`) {
		t.Fatalf("got %d %s", status, body)
	}
	after.send("GET /")
	waits(t, s, 2)
	clock.pass(s, 200*time.Millisecond)
	if _, _, body := before.read(); !strings.Contains(body, `"delay_ms":200`) {
		t.Errorf("the earlier request got %s", body)
	}
	waits(t, s, 1)
	clock.pass(s, 100*time.Millisecond)
	if _, _, body := after.read(); !strings.Contains(body, `"delay_ms":300`) {
		t.Errorf("the later request got %s", body)
	}
}

// A delay that is made shorter overtakes: the next answer is not always the one that waits longest.
func TestAnswersComeInTheOrderOfTheirTimes(t *testing.T) {
	clock := &heldClock{}
	s := started(t, 0, clock.told)
	delays := []int{500, 100, 400, 200, 300, 100, 600}
	connections := map[*client]int{}
	for i, delay := range delays {
		manage(t, s, "PATCH", "/settings", fmt.Sprintf(`{"delay_ms": %d}`, delay))
		c := connect(t, s.HTTPPort)
		connections[c] = delay
		c.send("GET /")
		waits(t, s, i+1)
	}
	for now := 100; now <= 600; now += 100 {
		clock.pass(s, 100*time.Millisecond)
		for c, delay := range connections {
			if delay == now {
				c.read()
				delete(connections, c)
			}
		}
		waits(t, s, len(connections))
	}
}

func TestMetricsTellRequestsInFlightDelayAndLag(t *testing.T) {
	clock := &heldClock{}
	s := started(t, 250*time.Millisecond, clock.told)
	c := connect(t, s.HTTPPort)
	c.send("GET /")
	waits(t, s, 1)

	_, text := manage(t, s, "GET", "/metrics", "")
	wantLines(t, text, "lab_downstream_in_flight 1", fmt.Sprintf("lab_downstream_loops %d", len(s.traffic.loops)),
		"lab_downstream_requests_total 0", "lab_downstream_delay_seconds 0.25")

	clock.pass(s, 257*time.Millisecond)
	c.read()
	_, text = manage(t, s, "GET", "/metrics", "")
	wantLines(t, text, "lab_downstream_in_flight 0", "lab_downstream_requests_total 1",
		`lab_downstream_lag_seconds_bucket{le="0.005"} 0`, `lab_downstream_lag_seconds_bucket{le="0.01"} 1`,
		"lab_downstream_lag_seconds_sum 0.007", "lab_downstream_lag_seconds_count 1")
}

func TestAcceptedConnectionsAreCounted(t *testing.T) {
	s := started(t, 0, NewClock())
	for range 3 {
		c := connect(t, s.HTTPPort)
		for range 2 {
			c.send("GET /health")
			c.read()
		}
	}
	_, text := manage(t, s, "GET", "/metrics", "")
	wantLines(t, text, "lab_downstream_accepted_connections_total 3")
}

func TestHealthIsAnsweredAtOnceAndNotCounted(t *testing.T) {
	// Nobody releases this clock: a health check that waited would never end.
	s := started(t, time.Minute, (&heldClock{}).told)
	if err := Check(s.ManagementPort, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	_, text := manage(t, s, "GET", "/metrics", "")
	wantLines(t, text, "lab_downstream_requests_total 0")
}

func TestHealthIsDownWhenTheTrafficPortDoesNotAnswer(t *testing.T) {
	closed, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + closed.Addr().String()
	_ = closed.Close()

	delay := constant(0)
	answer := httptest.NewRecorder()
	NewManagement(delay, NewMetrics(delay, &Traffic{}, NewAcceptQueues(ListenerQueue, nil)), address, goodSum).ServeHTTP(answer, httptest.NewRequest("GET", "/health", nil))
	if answer.Code != 503 || !strings.Contains(answer.Body.String(), `"status":"down"`) {
		t.Fatalf("got %d %s", answer.Code, answer.Body)
	}
}

func TestOtherPathsAndMethodsAreRefusedAtOnce(t *testing.T) {
	c := connect(t, started(t, time.Minute, (&heldClock{}).told).HTTPPort)
	c.send("GET /nothing")
	if status, _, _ := c.read(); status != 404 {
		t.Errorf("another path: %d", status)
	}
	c.send("DELETE /")
	if status, header, _ := c.read(); status != 405 || header.Get("Allow") != "GET" {
		t.Errorf("another method: %d %v", status, header)
	}
}

func TestBadPatchesAreRefusedAndChangeNothing(t *testing.T) {
	s := started(t, 200*time.Millisecond, (&heldClock{}).told)
	for _, body := range []string{
		"", "null", "{}", "[]", "300", `{"delay_ms": "300"}`, `{"delay_ms": -1}`, `{"delay_ms": 60001}`, `{"delay_ms": 1.5}`,
		`{"delay_ms": null}`, `{"delay": 300}`, `{"delay_ms": 300, "more": 1}`, `{"delay_ms": 300} {"delay_ms": 400}`, `{"delay_ms": "lognormal:median=200"}`, `{"delay_ms": ["200"]}`,
	} {
		status, answer := manage(t, s, "PATCH", "/settings", body)
		if status != 400 || !strings.Contains(answer, "60000") {
			t.Errorf("%s: got %d %s", body, status, answer)
		}
	}
	if _, body := manage(t, s, "GET", "/settings", ""); body != `{"delay_ms":200,"mean_ms":200,"sd_ms":0,"median_ms":200,"p95_ms":200,"p99_ms":200,"longest_ms":200}` {
		t.Errorf("the delay is now %s", body)
	}
}

func TestAllButHealthAndMetricsNeedsTheToken(t *testing.T) {
	s := started(t, 0, NewClock())
	calls := []string{"GET /health", "GET /metrics", "POST /health", "GET /time", "GET /settings", "PATCH /settings", "GET /nosuch", "GET /metrics/"}
	for i, call := range calls {
		method, path, _ := strings.Cut(call, " ")
		for _, token := range []string{"", "another", goodSum} {
			status, answer := manageWith(t, s, token, method, path, `{"delay_ms": 300}`)
			if refused := status == 403 && strings.Contains(answer, "needs the token"); refused != (i >= 2) {
				t.Errorf("%s with the token %q: got %d %s", call, token, status, answer)
			}
		}
	}
	if _, answer := manage(t, s, "GET", "/settings", ""); !strings.HasPrefix(answer, `{"delay_ms":0,`) {
		t.Errorf("the delay was changed: %s", answer)
	}
}

func TestWithoutASumNobodyHasTheToken(t *testing.T) {
	delay := constant(0)
	metrics := NewMetrics(delay, &Traffic{}, NewAcceptQueues(ListenerQueue, nil))
	for _, sums := range []string{"", "downstream", "downstream=", "netty=" + goodSum} {
		set, err := SettingsFrom([]string{"LAB_TOKEN_SUMS=" + sums})
		if err != nil || set.TokenSum != "" {
			t.Fatalf("%q: got %+v, %v", sums, set, err)
		}
		for _, token := range []string{"", goodToken} {
			request := httptest.NewRequest("GET", "/settings", nil)
			request.Header.Set("Lab-Token", token)
			answer := httptest.NewRecorder()
			NewManagement(delay, metrics, "", set.TokenSum).ServeHTTP(answer, request)
			if answer.Code != 403 {
				t.Errorf("%q, token %q: got %d", sums, token, answer.Code)
			}
		}
	}
}

func TestItsClockIsThatOfItsMachine(t *testing.T) {
	s := started(t, 0, NewClock())
	before := time.Now().UnixMilli()
	_, body := manage(t, s, "GET", "/time", "")
	var told struct {
		UnixMS int64 `json:"unix_ms"`
	}
	if err := json.Unmarshal([]byte(body), &told); err != nil || told.UnixMS < before || told.UnixMS > time.Now().UnixMilli() {
		t.Errorf("got %s, %v", body, err)
	}
}

func TestAnswersAreNeverEarlyByTheRealClock(t *testing.T) {
	c := connect(t, started(t, 30*time.Millisecond, NewClock()).HTTPPort)
	sent := time.Now()
	c.send("GET /")
	c.read()
	if took := time.Since(sent); took < 30*time.Millisecond {
		t.Fatalf("answered after %v", took)
	}
}

func TestStoppingReleasesBothPorts(t *testing.T) {
	s := started(t, 0, NewClock())
	deadline, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.Stop(deadline); err != nil {
		t.Fatal(err)
	}
	again, err := Start(Settings{HTTPPort: s.HTTPPort, ManagementPort: s.ManagementPort}, constant(0), NewClock())
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Stop(deadline)
}

func TestAPortInUseIsAnError(t *testing.T) {
	s := started(t, 0, NewClock())
	if _, err := Start(Settings{HTTPPort: s.HTTPPort}, constant(0), NewClock()); err == nil {
		t.Fatal("started twice on one port")
	}
	if _, err := Start(Settings{ManagementPort: s.ManagementPort}, constant(0), NewClock()); err == nil {
		t.Fatal("started twice on one management port")
	}
}
