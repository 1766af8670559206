package service

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	// headBytes is the longest head of a request; a longer one is refused with 431.
	headBytes = 4096
	// bodyBytes is the longest body. Nothing here needs one.
	bodyBytes = 64 << 10
)

// answer is what a request gets, ready to be written.
type answer struct {
	bytes []byte
	// delayed is whether it waits for delay first. A delay of 0 is one too: it is counted.
	delayed bool
	delay   time.Duration
	// closes is whether the connection ends after it. Without bytes it ends in silence.
	closes bool
	// interim is "100 Continue": the request itself is still to be answered.
	interim bool
}

// requests takes HTTP requests out of bytes that were read, and says what each gets:
//
//	GET /        200 after the delay
//	GET /health  200 at once
//
// Anything else is refused at once. It allocates nothing for the first of them. One per loop; not safe
// for use by many goroutines.
type requests struct {
	delay   *Delay
	draws   *draws
	unread  unread
	reader  *bufio.Reader
	request fasthttp.Request
	uri     fasthttp.URI
}

// seed tells this loop's draws from those of the others.
func newRequests(delay *Delay, seed uint64) *requests {
	return &requests{delay: delay, draws: newDraws(seed), reader: bufio.NewReaderSize(nil, headBytes)}
}

// next is the answer to the first request in data, and how many bytes that request has. ended is whether
// no more will come, continued whether "100 Continue" was sent. It is false while the request is not
// complete.
func (r *requests) next(data []byte, ended, continued bool) (answer, int, bool) {
	r.unread = unread{left: data, ended: ended}
	r.reader.Reset(&r.unread)
	given, err := r.read(continued)
	switch {
	case r.unread.short && !ended:
		return answer{}, 0, false
	case err != nil:
		given = failed(err)
	case given.interim:
		return given, 0, true
	}
	return given, len(data) - len(r.unread.left) - r.reader.Buffered(), true
}

func (r *requests) read(continued bool) (answer, error) {
	head := &r.request.Header
	if err := head.Read(r.reader); err != nil {
		return answer{}, err
	}
	if err := r.uri.Parse(head.Host(), head.RequestURI()); err != nil {
		return answer{}, err
	}
	if r.request.MayContinue() && !continued {
		return answer{bytes: []byte("HTTP/1.1 100 Continue\r\n\r\n"), interim: true}, nil
	}
	if err := r.request.ContinueReadBody(r.reader, bodyBytes, false); err != nil {
		return answer{}, err
	}
	return r.answer(), nil
}

func (r *requests) answer() answer {
	head := &r.request.Header
	path := string(r.uri.Path()) // compared in place, not copied
	switch {
	case path != "/" && path != "/health":
		return r.made(404, "", `{"error":"not found; there are / and /health"}`)
	case !head.IsGet():
		return r.made(405, "Allow: GET\r\n", `{"error":"only GET is allowed"}`)
	case path == "/health":
		return r.made(200, "", `{"status":"up"}`)
	}
	setting := r.delay.current.Load()
	given := answer{bytes: setting.answer}
	if head.ConnectionClose() || !head.IsHTTP11() {
		given = r.made(200, "", setting.body)
	}
	given.delayed, given.delay = true, r.draws.next(setting)
	return given
}

// made is an answer to the request as read: its connection is kept as the client asked.
func (r *requests) made(status int, header, body string) answer {
	head := &r.request.Header
	closes := head.ConnectionClose()
	if closes {
		header += "Connection: close\r\n"
	} else if !head.IsHTTP11() {
		header += "Connection: keep-alive\r\n"
	}
	bytes := rendered(status, "application/json", header, body)
	if head.IsHead() {
		bytes = bytes[:len(bytes)-len(body)]
	}
	return answer{bytes: bytes, closes: closes}
}

// failed is the answer to what is no request.
func failed(err error) answer {
	status, body := 400, "Error when parsing request"
	if err == io.EOF {
		return answer{closes: true}
	}
	if tooLong := (*fasthttp.ErrSmallBuffer)(nil); errors.As(err, &tooLong) {
		status, body = 431, "Too big request header"
	}
	return answer{bytes: rendered(status, "text/plain; charset=utf-8", "Connection: close\r\n", body), closes: true}
}

// rendered has no Date and no Server: what a caller does not read need not be written.
func rendered(status int, contentType, header, body string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n%s\r\n%s",
		status, http.StatusText(status), contentType, len(body), header, body)
}

// errShort is that more bytes are needed than were read from the connection.
var errShort = errors.New("not all bytes of the request are here yet")

// unread is what is left of the bytes that were read from a connection.
type unread struct {
	left         []byte
	ended, short bool
}

// Read fails with errShort, or with io.EOF if the connection ended, when nothing is left.
func (u *unread) Read(into []byte) (int, error) {
	if len(u.left) == 0 {
		u.short = true
		if u.ended {
			return 0, io.EOF
		}
		return 0, errShort
	}
	n := copy(into, u.left)
	u.left = u.left[n:]
	return n, nil
}
