package service

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func ofHost(netip.Addr) bool { return true }
func ofLab(netip.Addr) bool  { return false }

// asked is what a front answers to one request; headers are NAME=VALUE with spaces between.
func asked(front *Front, method, path, host, headers string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, nil)
	request.Host = host
	for _, header := range strings.Fields(headers) {
		name, value, _ := strings.Cut(header, "=")
		request.Header.Set(name, value)
	}
	answer := httptest.NewRecorder()
	front.ServeHTTP(answer, request)
	return answer
}

// part is one that tells what it is asked.
func part(t *testing.T) string {
	t.Helper()
	behind := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		answer.Header().Set("Content-Security-Policy", "default-src 'none'")
		_, _ = fmt.Fprintf(answer, "%s %s of %s, token %q", request.Method, request.URL, request.Host, request.Header.Get("Lab-Token"))
	}))
	t.Cleanup(behind.Close)
	return behind.Listener.Addr().String()
}

func TestFrontPassesOnWhatThisMachineAsksAndNothingOfAnotherSite(t *testing.T) {
	front := NewFront(part(t), "", "", ofHost)
	link := "Sec-Fetch-Site=cross-site Sec-Fetch-Mode=navigate Sec-Fetch-Dest=document"
	for _, test := range []struct{ method, path, host, headers, refused string }{
		{"GET", "/api?query=up", "localhost:29090", "", ""},
		{"GET", "/api", "LocalHost", "", ""},
		{"GET", "/api", "127.0.0.1:9090", "", ""},
		{"GET", "/api", "[::1]:9090", "", ""},
		{"POST", "/api", "localhost:8474", "", ""},
		{"POST", "/api", "localhost:9090", "Sec-Fetch-Site=same-origin Origin=http://localhost:9090", ""},
		// Whoever types the address.
		{"GET", "/api", "localhost:9090", "Sec-Fetch-Site=none Sec-Fetch-Mode=navigate Sec-Fetch-Dest=document", ""},
		{"GET", "/", "localhost:9090", link, ""},
		{"GET", "/graph?g0.expr=up", "localhost:9090", link, ""},
		// A page elsewhere whose name points here now.
		{"GET", "/api", "evil.example:9090", "Sec-Fetch-Site=same-origin", "Host"},
		{"POST", "/api", "evil.example:8474", "", "Host"},
		{"GET", "/api", "localhost.evil.example", "", "Host"},
		{"GET", "/api", "", "", "Host"},
		// A page elsewhere that asks us by our own name.
		{"GET", "/", "localhost:9090", "Sec-Fetch-Site=cross-site Sec-Fetch-Mode=no-cors Sec-Fetch-Dest=image", "ask"},
		{"GET", "/", "localhost:9090", "Sec-Fetch-Site=cross-site Sec-Fetch-Mode=navigate Sec-Fetch-Dest=iframe", "ask"},
		{"GET", "/", "localhost:9090", "Sec-Fetch-Site=same-site Sec-Fetch-Mode=navigate Sec-Fetch-Dest=iframe", "ask"},
		{"GET", "/api/v1/query_range?query=up", "localhost:9090", link, "ask"},
		{"GET", "/debug/pprof/profile?seconds=300", "localhost:9090", link, "ask"},
		{"GET", "/graph/../api/v1/query", "localhost:9090", link, "ask"},
		{"POST", "/", "localhost:8474", link, "change"},
		{"DELETE", "/api", "localhost:8474", "Origin=http://evil.example", "change"},
		{"POST", "/api", "localhost:8474", "Origin=null", "change"},
	} {
		answer := asked(front, test.method, test.path, test.host, test.headers)
		status, says := http.StatusOK, fmt.Sprintf("%s %s of %s, ", test.method, test.path, test.host)
		if test.refused != "" {
			status, says = http.StatusForbidden, test.refused
		}
		if answer.Code != status || !strings.Contains(answer.Body.String(), says) {
			t.Errorf("%+v: got %d %s, want %d with %s", test, answer.Code, answer.Body, status, says)
		}
		frames := strings.Join(answer.Header()["Content-Security-Policy"], "; ")
		if status == http.StatusOK && (answer.Header().Get("X-Frame-Options") != "DENY" || frames != "default-src 'none'; frame-ancestors 'none'") {
			t.Errorf("%+v: it may be in a frame: %v", test, answer.Header())
		}
	}
}

func TestAContainerOfTheLabReadsMetricsAndNothingElseWithoutTheToken(t *testing.T) {
	right := "toxiproxy=" + goodSum
	for _, test := range []struct {
		sums, method, path, token string
		status                    int
	}{
		{right, "GET", "/metrics", "", 200},
		{"", "GET", "/metrics", "", 200},
		{right, "POST", "/metrics", "", 403},
		{right, "GET", "/metrics/../proxies", "", 403},
		{right, "GET", "/", "", 403},
		{right, "GET", "/proxies", "", 403},
		{right, "POST", "/reset", "another", 403},
		{right, "POST", "/reset", goodSum, 403},
		{right, "POST", "/reset", goodToken, 200},
		// The token of another part, and a lab without tokens.
		{"netty=" + goodSum, "POST", "/reset", goodToken, 403},
		{"", "POST", "/reset", goodToken, 403},
		{"", "POST", "/reset", "", 403},
	} {
		front := NewFront(part(t), test.sums, "of the page", ofLab)
		request := httptest.NewRequest(test.method, "http://localhost:8474"+test.path, nil)
		request.Header.Set("Lab-Token", test.token)
		answer := httptest.NewRecorder()
		front.ServeHTTP(answer, request)
		if answer.Code != test.status {
			t.Errorf("%+v: got %d %s", test, answer.Code, answer.Body)
		}
		if answer.Code == 200 && !strings.HasSuffix(answer.Body.String(), `token ""`) {
			t.Errorf("%+v: the token is handed on: %s", test, answer.Body)
		}
	}
}

func TestTheAgentAloneGetsThePagesToken(t *testing.T) {
	for to, token := range map[string]string{"loadgen:9464": "of the page", "prometheus:9090": "", "127.0.0.1:8474": ""} {
		var got *http.Request
		front := NewFront(to, "", "of the page", ofHost)
		front.proxy.Transport = passed(func(request *http.Request) (*http.Response, error) {
			got = request
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, nil
		})
		asked(front, "GET", "/api/live", "localhost:9464", "Lab-Token=forged")
		if got == nil || got.URL.Host != to || got.Host != "localhost:9464" || got.Header.Get("Lab-Token") != token {
			t.Errorf("%s: got %+v", to, got)
		}
	}
}

type passed func(*http.Request) (*http.Response, error)

func (p passed) RoundTrip(request *http.Request) (*http.Response, error) { return p(request) }

func TestWhoIsOfTheHost(t *testing.T) {
	proc := t.TempDir()
	if err := os.MkdirAll(filepath.Join(proc, "net"), 0o755); err != nil {
		t.Fatal(err)
	}
	// As in a container whose network is 172.18.0.0/16.
	routes := "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n" +
		"eth0 00000000 010012AC 0003 0 0 0 00000000 0 0 0\neth0 000012AC 00000000 0001 0 0 0 0000FFFF 0 0 0\n"
	if err := os.WriteFile(filepath.Join(proc, "net", "route"), []byte(routes), 0o644); err != nil {
		t.Fatal(err)
	}
	var networks []net.Addr
	for _, subnet := range []string{"127.0.0.1/8", "172.18.0.4/16", "fd00::4/64"} {
		address, network, _ := net.ParseCIDR(subnet)
		networks = append(networks, &net.IPNet{IP: address, Mask: network.Mask})
	}
	for peer, isHost := range map[string]bool{
		"172.18.0.1": true, "192.168.65.1": true, "10.0.2.2": true, "2001:db8::1": true,
		"172.18.0.2": false, "172.18.0.4": false, "172.18.255.254": false, "127.0.0.1": false, "fd00::1": false,
	} {
		if got := isOutside(netip.MustParseAddr(peer), networks, gateways(proc)); got != isHost {
			t.Errorf("%s: got %v, want %v", peer, got, isHost)
		}
	}
	if isOutside(netip.MustParseAddr("172.18.0.1"), networks, gateways(t.TempDir())) {
		t.Error("without a route nothing tells the gateway from a container")
	}
}

func TestAFrontOfNoRouteIsRefused(t *testing.T) {
	for _, route := range []string{"9090", "none=prometheus:9090"} {
		if err := ServeFront(route, os.Getenv); err == nil || !strings.Contains(err.Error(), route) {
			t.Errorf("%s: got %v", route, err)
		}
	}
}
