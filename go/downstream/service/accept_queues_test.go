package service

import (
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// kernel is queues made by hand: what is not in it does not listen.
type kernel map[int]int

func (k kernel) length(port int) (int, bool) {
	length, known := k[port]
	return length, known
}

func told(q *AcceptQueues) string {
	registry := prometheus.NewRegistry()
	registry.MustRegister(q)
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/", nil))
	return answer.Body.String()
}

var listenersByPort = map[int]string{8666: "toxiproxy", 8080: "downstream"}

func TestWhatStandsInAcceptQueuesIsToldBetweenScrapesToo(t *testing.T) {
	k := kernel{8080: 3}
	q := NewAcceptQueues(k.length, listenersByPort)
	start := time.Unix(1_000_000, 0)
	// A burst of half a second: 2,774 connections, then 26.
	for at, queue := range []int{0, 2774, 26, 0, 0} {
		k[8666] = queue
		q.Look(start.Add(time.Duration(at) * 250 * time.Millisecond))
	}
	wantLines(t, told(q),
		`lab_path_accept_queue_length{listener="toxiproxy"} 2774`,
		`lab_path_accept_queue_connection_seconds_total{listener="toxiproxy"} 700`,
		`lab_path_accept_queue_occupied_seconds_total{listener="toxiproxy"} 0.5`,
		`lab_path_accept_queue_length{listener="downstream"} 3`,
	)
	// Two seconds later nobody remembers the burst, but the counters.
	k[8666], k[8080] = 0, 0
	q.Look(start.Add(3 * time.Second))
	wantLines(t, told(q),
		`lab_path_accept_queue_length{listener="toxiproxy"} 0`,
		`lab_path_accept_queue_connection_seconds_total{listener="toxiproxy"} 700`,
	)
}

func TestAListenerThatIsNotThereHasNoLength(t *testing.T) {
	k := kernel{}
	q := NewAcceptQueues(k.length, listenersByPort)
	if text := told(q); strings.Contains(text, "listener=") {
		t.Fatalf("before a look: %s", text)
	}
	start := time.Unix(1_000_000, 0)
	k[8666], k[8080] = 5, 0
	q.Look(start)
	// The proxy is taken down: it does not listen.
	delete(k, 8666)
	q.Look(start.Add(time.Second))
	q.Look(start.Add(2 * time.Second))
	text := told(q)
	wantLines(t, text, `lab_path_accept_queue_connection_seconds_total{listener="toxiproxy"} 5`)
	if strings.Contains(text, `lab_path_accept_queue_length{listener="toxiproxy"}`) {
		t.Errorf("tells what the kernel does not:\n%s", text)
	}
}

func TestOverflowsAreTheKernelsCountAndNothingWithoutIt(t *testing.T) {
	proc := t.TempDir()
	if told := overflowed(proc); told != nil {
		t.Fatalf("told %v without a kernel", *told)
	}
	if err := os.MkdirAll(filepath.Join(proc, "1", "net"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("1", filepath.Join(proc, "self")); err != nil {
		t.Fatal(err)
	}
	// As Linux 6.18 wrote it, with fewer fields.
	netstat := "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 7 9\nIpExt: InNoRoutes\nIpExt: 0\n"
	if err := os.WriteFile(filepath.Join(proc, "1", "net", "netstat"), []byte(netstat), 0o644); err != nil {
		t.Fatal(err)
	}
	if told := overflowed(proc); told == nil || *told != 7 {
		t.Fatalf("told %v", told)
	}
}

func TestTheKernelTellsTheQueueOfAListener(t *testing.T) {
	// Toxiproxy's listener is bound for both families, the downstream's for IPv4.
	for _, network := range []string{"tcp", "tcp4"} {
		listener, err := net.Listen(network, ":0")
		if err != nil {
			t.Fatal(err)
		}
		for want := range 3 { // Nobody accepts them.
			// A client is connected before its last packet has put it into the queue.
			for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
				length, known := ListenerQueue(port(listener))
				if known && length == want {
					break
				}
				if !known || time.Now().After(deadline) {
					t.Fatalf("%s: %d connections, the kernel tells %d, %v", network, want, length, known)
				}
			}
			connect(t, port(listener))
		}
		_ = listener.Close()
		if length, known := ListenerQueue(port(listener)); known {
			t.Errorf("%s: tells %d of a port where nobody listens", network, length)
		}
	}
}
