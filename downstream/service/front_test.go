package service

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestFrontPassesOnWhatThisMachineAsksAndNothingOfAnotherSite(t *testing.T) {
	behind := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		_, _ = fmt.Fprintf(answer, "%s %s", request.Method, request.URL)
	}))
	defer behind.Close()
	front := Front(behind.Listener.Addr().String())
	for _, one := range []struct{ method, host, headers, refused string }{
		{"GET", "localhost:29090", "", ""},
		{"GET", "LocalHost", "", ""},
		{"GET", "127.0.0.1:9090", "", ""},
		{"GET", "[::1]:9090", "", ""},
		{"POST", "localhost:8474", "", ""},
		{"POST", "localhost:9090", "Sec-Fetch-Site=same-origin Origin=http://localhost:9090", ""},
		{"GET", "localhost:9090", "Sec-Fetch-Site=cross-site Sec-Fetch-Mode=navigate", ""},
		// A page elsewhere whose name points here now.
		{"GET", "evil.example:9090", "Sec-Fetch-Site=same-origin", "Host"},
		{"POST", "evil.example:8474", "", "Host"},
		{"GET", "localhost.evil.example", "", "Host"},
		{"GET", "", "", "Host"},
		// A page elsewhere that asks us by our own name.
		{"GET", "localhost:9090", "Sec-Fetch-Site=cross-site Sec-Fetch-Mode=no-cors", "ask"},
		{"POST", "localhost:8474", "Sec-Fetch-Site=cross-site Sec-Fetch-Mode=navigate", "change"},
		{"DELETE", "localhost:8474", "Origin=http://evil.example", "change"},
		{"POST", "localhost:8474", "Origin=null", "change"},
	} {
		request := httptest.NewRequest(one.method, "/api?query=up", nil)
		request.Host = one.host
		for _, header := range strings.Fields(one.headers) {
			name, value, _ := strings.Cut(header, "=")
			request.Header.Set(name, value)
		}
		answer := httptest.NewRecorder()
		front.ServeHTTP(answer, request)
		status, said := http.StatusOK, one.method+" /api?query=up"
		if one.refused != "" {
			status, said = http.StatusForbidden, one.refused
		}
		if answer.Code != status || !strings.Contains(answer.Body.String(), said) {
			t.Errorf("%+v: got %d %s, want %d with %s", one, answer.Code, answer.Body, status, said)
		}
	}
}

func TestAFrontOfNoRouteIsRefused(t *testing.T) {
	for _, route := range []string{"9090", "none=prometheus:9090"} {
		if err := ServeFront(route); err == nil || !strings.Contains(err.Error(), route) {
			t.Errorf("%s: got %v", route, err)
		}
	}
}
