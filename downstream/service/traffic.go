package service

import (
	"time"

	"github.com/valyala/fasthttp"
)

// Clock is the time as the traffic port sees it. Sleep returns at once when there is nothing
// to wait for.
type Clock interface {
	Now() time.Time
	Sleep(time.Duration)
}

// WallClock is the real one.
type WallClock struct{}

// Now is the current time, with its monotonic reading.
func (WallClock) Now() time.Time { return time.Now() }

// Sleep blocks the calling goroutine.
func (WallClock) Sleep(wait time.Duration) { time.Sleep(wait) }

// idleTimeout is how long a connection may wait for its next request.
const idleTimeout = 75 * time.Second

// NewTraffic is the server of the traffic port:
//
//	GET /        200 after the delay
//	GET /health  200 at once
//
// Each connection has a goroutine of its own, so waiting requests cost memory, not CPU. The
// due time counts from the moment the request was read; the lag is taken just before the
// answer is handed to the connection.
func NewTraffic(delay *Delay, metrics *Metrics, clock Clock) *fasthttp.Server {
	return &fasthttp.Server{
		Handler: func(request *fasthttp.RequestCtx) {
			switch string(request.Path()) { // compared in place, not copied
			case "/":
				if !isGet(request) {
					return
				}
				metrics.arrive()
				setting := delay.current.Load()
				due := clock.Now().Add(setting.delay)
				clock.Sleep(setting.delay)
				metrics.answer(clock.Now().Sub(due))
				request.SetContentType("application/json")
				request.SetBody(setting.body)
			case "/health":
				if isGet(request) {
					request.SetContentType("application/json")
					request.SetBodyString(`{"status":"up"}`)
				}
			default:
				refuse(request, fasthttp.StatusNotFound, `{"error":"not found; there are / and /health"}`)
			}
		},
		// Longer than the lab's own clients keep one (60 s), and shorter than some frameworks' do:
		// what they leave would use up Toxiproxy's descriptors, two for each.
		IdleTimeout: idleTimeout,
		// What a caller does not read need not be written.
		NoDefaultServerHeader: true,
		NoDefaultDate:         true,
		// A generator may open tens of thousands of connections; the limit on open files is
		// what bounds them.
		Concurrency: 1 << 20,
	}
}

func isGet(request *fasthttp.RequestCtx) bool {
	if request.IsGet() {
		return true
	}
	request.Response.Header.Set("Allow", "GET")
	refuse(request, fasthttp.StatusMethodNotAllowed, `{"error":"only GET is allowed"}`)
	return false
}

func refuse(request *fasthttp.RequestCtx, status int, body string) {
	request.SetStatusCode(status)
	request.SetContentType("application/json")
	request.SetBodyString(body)
}
