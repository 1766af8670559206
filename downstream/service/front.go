package service

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"
)

// Front passes on to one service of the lab, at host:port, what programs of the host ask. Prometheus and
// Toxiproxy's API do not look at who asks, and any page that is open in the host's browser reaches a
// published port. So a page of another site gets 403: one that says so, and one whose name was made to
// point to this machine (DNS rebinding), as Host must be one of this machine's own names.
func Front(to string) http.Handler {
	service := &url.URL{Scheme: "http", Host: to}
	proxy := &httputil.ReverseProxy{Rewrite: func(request *httputil.ProxyRequest) { request.SetURL(service) }}
	return http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		if problem := foreign(request); problem != "" {
			http.Error(answer, problem, http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(answer, request)
	})
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
	// Who follows a link opens a page, which the other site cannot read.
	browser := request.Header.Get
	if browser("Sec-Fetch-Site") == "cross-site" && browser("Sec-Fetch-Mode") != "navigate" {
		return "another site may not ask anything here"
	}
	return ""
}

// ServeFront serves the Front of a route PORT=HOST:PORT on its first port, until that fails.
func ServeFront(route string) error {
	port, to, found := strings.Cut(route, "=")
	if !found {
		return fmt.Errorf("%q is not a route; allowed: PORT=HOST:PORT", route)
	}
	server := &http.Server{Addr: ":" + port, Handler: Front(to), ReadHeaderTimeout: 5 * time.Second}
	return fmt.Errorf("%s: %w", route, server.ListenAndServe())
}
