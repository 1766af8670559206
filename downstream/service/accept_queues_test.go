package service

import (
	"fmt"
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

// The tables of proc(5), as Linux 6.18 wrote them; fewer fields at the end.
const (
	tableHeader = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	socketLine  = "%4d: %s:%04X 00000000:0000 %s 00000000:%08X 00:00000000 00000000     0        0 23011 1 0000000000000000 100 0 0 10 0\n"
	netstat     = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 7 9\nIpExt: InNoRoutes\nIpExt: 0\n"
)

// kernel is a proc(5) made by hand.
type kernel struct {
	t    *testing.T
	root string
}

func newKernel(t *testing.T) kernel {
	t.Helper()
	k := kernel{t, t.TempDir()}
	if err := os.MkdirAll(filepath.Join(k.root, "1", "net"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("1", filepath.Join(k.root, "self")); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k kernel) write(name, text string) {
	k.t.Helper()
	if err := os.WriteFile(filepath.Join(k.root, "1", "net", name), []byte(text), 0o644); err != nil {
		k.t.Fatal(err)
	}
}

// queued is the proxy's queue, bound for both families, and the downstream's.
func (k kernel) queued(proxy, downstream int) {
	k.write("tcp", tableHeader+fmt.Sprintf(socketLine, 0, "00000000", 8081, "0A", 99)+
		fmt.Sprintf(socketLine, 1, "00000000", 8080, "0A", downstream)+
		// Established: what stands in its receive queue are bytes.
		fmt.Sprintf(socketLine, 2, "0100007F", 8080, "01", 500))
	k.write("tcp6", tableHeader+fmt.Sprintf(socketLine, 0, strings.Repeat("0", 32), 8666, "0A", proxy))
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
	k := newKernel(t)
	q := NewAcceptQueues(k.root, listenersByPort)
	start := time.Unix(1_000_000, 0)
	// A burst of half a second: 2,774 connections, then 26.
	for at, queue := range []int{0, 2774, 26, 0, 0} {
		k.queued(queue, 3)
		q.Look(start.Add(time.Duration(at) * 250 * time.Millisecond))
	}
	k.write("netstat", netstat)
	wantLines(t, told(q),
		`lab_path_accept_queue_length{listener="toxiproxy"} 2774`,
		`lab_path_accept_queue_connection_seconds_total{listener="toxiproxy"} 700`,
		`lab_path_accept_queue_occupied_seconds_total{listener="toxiproxy"} 0.5`,
		`lab_path_accept_queue_length{listener="downstream"} 3`,
		`lab_path_listen_overflows_total 7`,
	)
	// Two seconds later nobody remembers the burst, but the counters.
	k.queued(0, 0)
	q.Look(start.Add(3 * time.Second))
	wantLines(t, told(q),
		`lab_path_accept_queue_length{listener="toxiproxy"} 0`,
		`lab_path_accept_queue_connection_seconds_total{listener="toxiproxy"} 700`,
	)
}

func TestAListenerThatIsNotThereHasNoLength(t *testing.T) {
	k := newKernel(t)
	q := NewAcceptQueues(k.root, listenersByPort)
	if text := told(q); text != "" {
		t.Fatalf("before a look, and without netstat: %s", text)
	}
	start := time.Unix(1_000_000, 0)
	k.queued(5, 0)
	q.Look(start)
	// The proxy is taken down: it does not listen.
	k.write("tcp6", tableHeader)
	q.Look(start.Add(time.Second))
	q.Look(start.Add(2 * time.Second))
	text := told(q)
	wantLines(t, text, `lab_path_accept_queue_connection_seconds_total{listener="toxiproxy"} 5`)
	if strings.Contains(text, `lab_path_accept_queue_length{listener="toxiproxy"}`) || strings.Contains(text, "overflows") {
		t.Errorf("tells what the kernel does not:\n%s", text)
	}
}

func TestTheKernelsOwnTableIsRead(t *testing.T) {
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for range 2 { // Nobody accepts them.
		connect(t, port(listener))
	}
	q := NewAcceptQueues("/proc", map[int]string{port(listener): "toxiproxy"})
	q.Look(time.Now())
	wantLines(t, told(q), `lab_path_accept_queue_length{listener="toxiproxy"} 2`)
}
