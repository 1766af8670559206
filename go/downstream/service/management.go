package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// NewManagement handles the management port. It shares nothing with the traffic port but the
// process, so it answers while the traffic port is busy:
//
//	GET   /health    200 when the traffic port answers a request, else 503
//	GET   /metrics   for Prometheus
//	GET   /time      {"unix_ms":…}: what its clock says
//	GET   /settings  {"delay_ms":200,"mean_ms":200,…}: what it was set to, and its facts
//	PATCH /settings  {"delay_ms":300} or {"delay_ms":"lognormal:median=200,p99=800"}: for requests that
//	                 arrive from now on
//
// All but the first two need the token with the sum tokenSum: any container of the lab reaches this port.
// trafficURL is the traffic port's own address, e.g. http://127.0.0.1:8080.
func NewManagement(delay *Delay, metrics *Metrics, trafficURL, tokenSum string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics.registry, promhttp.HandlerOpts{}))

	// A connection of its own per check, so that accepting is checked too.
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		if err := check(client, trafficURL+"/health"); err != nil {
			writeJSON(w, http.StatusServiceUnavailable, map[string]any{"status": "down", "error": err.Error()})
			return
		}
		writeJSON(w, http.StatusOK, map[string]any{"status": "up", "service": "downstream"})
	})

	mux.HandleFunc("GET /time", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"unix_ms": time.Now().UnixMilli()})
	})

	showSettings := func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, delay.current.Load().facts)
	}
	mux.HandleFunc("GET /settings", showSettings)
	mux.HandleFunc("PATCH /settings", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4096))
		if err != nil {
			writeJSON(w, http.StatusBadRequest, map[string]any{"error": "the body cannot be read: " + err.Error()})
			return
		}
		wanted, err := patch(body)
		if err == nil {
			err = delay.Set(wanted)
		}
		if err != nil {
			writeJSON(w, http.StatusBadRequest, map[string]any{"error": err.Error()})
			return
		}
		showSettings(w, r)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		isOpen := r.Method == http.MethodGet && (r.URL.Path == "/health" || r.URL.Path == "/metrics")
		if !isOpen && !hasToken(r, tokenSum) {
			writeJSON(w, http.StatusForbidden, map[string]any{"error": tokenIsNeeded})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// patch reads the words of the delay that a PATCH body asks for.
func patch(body []byte) (string, error) {
	var wanted struct {
		DelayMS any `json:"delay_ms"`
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	decoder.UseNumber()
	if err := decoder.Decode(&wanted); err == nil && !decoder.More() {
		switch value := wanted.DelayMS.(type) {
		case json.Number:
			return value.String(), nil
		case string:
			if _, err := strconv.Atoi(value); err != nil {
				return value, nil
			}
		}
	}
	return "", fmt.Errorf(`%q is not {"delay_ms": <delay>}, the delay once: %s`, body, delayWords)
}

// check fails unless the URL answers 200.
func check(client *http.Client, url string) error {
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, response.Status)
	}
	return nil
}

// Check is the health check of a running service, from outside its process.
func Check(managementPort int, deadline time.Duration) error {
	return check(&http.Client{Timeout: deadline}, fmt.Sprintf("http://127.0.0.1:%d/health", managementPort))
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The status is out; a caller that went away is no error of this service.
	_ = json.NewEncoder(w).Encode(value)
}
