package service

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// PageToken is the variable with the token that the agent takes the control page's requests by.
const PageToken = "LAB_PAGE_TOKEN"

// agent is the name of the part that serves the control page.
const agent = "loadgen"

// pages are the paths that a link of another site may open: those of the control page and of Prometheus.
var pages = map[string]bool{
	"/": true, "/graph": true, "/query": true, "/alerts": true, "/targets": true, "/rules": true,
	"/service-discovery": true, "/status": true, "/tsdb-status": true, "/flags": true, "/config": true,
}

// Front passes on to one part of the lab, at host:port, what programs of the host ask. The control page, Prometheus
// and Toxiproxy's API do not look at who asks, and two others reach this port as well:
//
// A page of another site that is open in the host's browser. It gets 403: one that says so, and one whose name was
// made to point to this machine (DNS rebinding), as Host must be one of this machine's own names.
//
// A container of the lab's network, as a server under test. It may read the metrics; all else needs the token of
// Toxiproxy's API, which driver and agent have.
type Front struct {
	to, sum, pageToken string
	isHost             func(peer netip.Addr) bool
	proxy              *httputil.ReverseProxy
}

// NewFront takes the sums of all tokens, the token of the control page, and what tells a peer of the host from one
// of the lab's network (IsHost, but for tests).
func NewFront(to, sums, pageToken string, isHost func(netip.Addr) bool) *Front {
	front := &Front{to: to, sum: sumOf(sums, "toxiproxy"), pageToken: pageToken, isHost: isHost}
	front.proxy = &httputil.ReverseProxy{Rewrite: front.rewrite, ModifyResponse: noFrames}
	return front
}

func (f *Front) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	problem := ""
	if peer, err := netip.ParseAddrPort(request.RemoteAddr); err == nil && f.isHost(peer.Addr().Unmap()) {
		problem = foreign(request)
	} else if (request.Method != http.MethodGet || request.URL.Path != "/metrics") && !hasToken(request, f.sum) {
		problem = tokenIsNeeded
	}
	if problem != "" {
		http.Error(answer, problem, http.StatusForbidden)
		return
	}
	f.proxy.ServeHTTP(answer, request)
}

// rewrite keeps Host, by which the agent knows the control page's names. A token goes to the part alone that it is of.
func (f *Front) rewrite(request *httputil.ProxyRequest) {
	request.SetURL(&url.URL{Scheme: "http", Host: f.to})
	request.Out.Host = request.In.Host
	request.Out.Header.Del(tokenHeader)
	if host, _, _ := strings.Cut(f.to, ":"); host == agent {
		request.Out.Header.Set(tokenHeader, f.pageToken)
	}
}

func noFrames(answer *http.Response) error {
	answer.Header.Set("X-Frame-Options", "DENY")
	// Beside the policy of the page itself: both hold.
	answer.Header.Add("Content-Security-Policy", "frame-ancestors 'none'")
	return nil
}

// foreign says why a request is not of a program of this machine; empty: it is, or nobody can tell.
func foreign(request *http.Request) string {
	switch strings.ToLower((&url.URL{Host: request.Host}).Hostname()) {
	case "localhost", "127.0.0.1", "::1":
	default:
		return "this Host is not this machine's: use http://localhost and the published port"
	}
	if new(http.CrossOriginProtection).Check(request) != nil {
		return "another site may not change anything here"
	}
	browser := request.Header.Get
	switch browser("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return ""
	}
	// Who follows a link opens a page, which the other site cannot read. A frame is another destination.
	if browser("Sec-Fetch-Mode") == "navigate" && browser("Sec-Fetch-Dest") == "document" && pages[request.URL.Path] {
		return ""
	}
	return "another site may not ask anything here, and link to pages only"
}

// IsHost tells whether a peer is of the machine that the lab runs on. What comes by a published port has the address
// of the network's gateway, or one outside of this container's networks. A container of the lab has one inside, and
// may not send under another (no NET_RAW).
func IsHost(peer netip.Addr) bool {
	networks, err := net.InterfaceAddrs()
	return err == nil && isOutside(peer, networks, gateways("/proc"))
}

func isOutside(peer netip.Addr, networks []net.Addr, gateways []netip.Addr) bool {
	for _, gateway := range gateways {
		if peer == gateway {
			return true
		}
	}
	for _, network := range networks {
		if inside, ok := network.(*net.IPNet); !ok || inside.Contains(peer.AsSlice()) {
			return false
		}
	}
	return true
}

// gateways are those of the default routes.
func gateways(proc string) []netip.Addr {
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return nil
	}
	routes, err := fs.NetRoute()
	if err != nil {
		return nil
	}
	var found []netip.Addr
	for _, route := range routes {
		if route.Destination == 0 && route.Mask == 0 && route.Gateway != 0 {
			var address [4]byte
			binary.NativeEndian.PutUint32(address[:], route.Gateway)
			found = append(found, netip.AddrFrom4(address))
		}
	}
	return found
}

// ServeFront serves the Front of a route PORT=HOST:PORT on its first port, until that fails.
func ServeFront(route string, getenv func(string) string) error {
	port, to, found := strings.Cut(route, "=")
	if !found {
		return fmt.Errorf("%q is not a route; allowed: PORT=HOST:PORT", route)
	}
	front := NewFront(to, getenv(TokenSums), getenv(PageToken), IsHost)
	server := &http.Server{Addr: ":" + port, Handler: front, ReadHeaderTimeout: 5 * time.Second}
	return fmt.Errorf("%s: %w", route, server.ListenAndServe())
}
