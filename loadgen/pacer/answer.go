// Where an answer ends: HTTP/1.x, as far as a client that keeps its connections needs it.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"regexp"

	"github.com/valyala/fasthttp"
)

const (
	// headBytes is the longest head of an answer.
	headBytes = 64 << 10
	// sizeDigits is the longest size of a chunk: what an int64 holds.
	sizeDigits = 15
)

var (
	errShort    = errors.New("not all bytes of the head are here yet")
	errProtocol = errors.New("not an answer of HTTP/1.x")
)

// place is where in an answer the next byte stands.
type place uint8

const (
	inHead place = iota
	// inBody has a known length left, inStream lasts until the connection ends.
	inBody
	inStream
	// Of a chunked body: its size, what may follow the size, its data, the end of the line after it; then
	// a line of the trailer.
	inSize
	inExtension
	inChunk
	inChunkEnd
	inTrailer
)

// answer is how much of an answer was read.
type answer struct {
	status int
	// left is how many bytes of the body, or of the chunk, are to come; the size of a chunk as far as read.
	left  int64
	place place
	// count is of the digits of a size, or of the bytes of a line of the trailer.
	count uint32
	// closes is whether the connection ends after it.
	closes bool
}

// parser takes answers out of bytes that were read. The parser of heads is fasthttp's. It allocates nothing.
// One per loop; not safe for use by many goroutines.
type parser struct {
	unread unread
	reader *bufio.Reader
	head   fasthttp.ResponseHeader
}

func newParser() *parser {
	return &parser{reader: bufio.NewReaderSize(nil, headBytes)}
}

// read goes on in an answer, to a request that may be one for the head only. It returns what it did not use:
// part of a head, of which more has to come, or what follows the answer. It is true when the answer is whole.
func (p *parser) read(a *answer, data []byte, headless bool) ([]byte, bool, error) {
	for len(data) > 0 {
		switch a.place {
		case inHead:
			used, err := p.readHead(a, data, headless)
			if err != nil {
				if err == errShort {
					return data, false, nil
				}
				return nil, false, err
			}
			data = data[used:]
			if a.place == inBody && a.left == 0 {
				return data, true, nil
			}
		case inBody, inChunk:
			used := min(a.left, int64(len(data)))
			data = data[used:]
			a.left -= used
			if a.left > 0 {
				break
			}
			if a.place == inBody {
				return data, true, nil
			}
			a.place = inChunkEnd
		case inStream:
			data = nil
		default:
			whole, err := a.control(data[0])
			data = data[1:]
			if whole || err != nil {
				return data, whole, err
			}
		}
	}
	return nil, false, nil
}

// control takes one byte of what is between chunks. It is true after the last one.
func (a *answer) control(b byte) (bool, error) {
	switch a.place {
	case inSize:
		digit := int64(-1)
		switch {
		case b >= '0' && b <= '9':
			digit = int64(b - '0')
		case b|0x20 >= 'a' && b|0x20 <= 'f':
			digit = int64(b|0x20-'a') + 10
		}
		if digit >= 0 && a.count < sizeDigits {
			a.left, a.count = a.left<<4|digit, a.count+1
			return false, nil
		}
		if digit >= 0 || a.count == 0 || b != '\r' && b != '\n' && b != ';' && b != ' ' && b != '\t' {
			return false, errProtocol
		}
		a.place = inExtension
		return a.control(b)
	case inExtension:
		if b == '\n' {
			a.place, a.count = inChunk, 0
			if a.left == 0 {
				a.place = inTrailer
			}
		}
	case inChunkEnd:
		if b == '\n' {
			a.place = inSize
		} else if b != '\r' {
			return false, errProtocol
		}
	case inTrailer:
		switch b {
		case '\n':
			if a.count == 0 {
				return true, nil
			}
			a.count = 0
		case '\r':
		default:
			a.count++
		}
	}
	return false, nil
}

// readHead reads the next head, which is in data from its first byte on, and says how long it is.
func (p *parser) readHead(a *answer, data []byte, headless bool) (int, error) {
	p.unread = unread{left: data}
	p.reader.Reset(&p.unread)
	err := p.head.Read(p.reader)
	if err != nil {
		if p.unread.short && len(data) < headBytes {
			return 0, errShort
		}
		return 0, errProtocol
	}
	used := len(data) - len(p.unread.left) - p.reader.Buffered()
	status, length := p.head.StatusCode(), p.head.ContentLength()
	switch {
	case status < 100 || status >= statuses || status == 101:
		return 0, errProtocol
	case status < 200:
		// An interim answer. The answer follows.
		return used, nil
	}
	a.status, a.left, a.count = status, 0, 0
	a.closes = p.head.ConnectionClose() || bytes.EqualFold(p.head.Peek(fasthttp.HeaderConnection), []byte("close"))
	switch {
	case headless || status == 204 || status == 304:
		a.place = inBody
		if length < 0 {
			// fasthttp takes it that a body follows, which lasts until the connection ends.
			a.closes = !p.head.IsHTTP11() || asksToClose.Match(data[:used])
		}
	case length >= 0:
		a.place, a.left = inBody, int64(length)
	case length == -1:
		a.place = inSize
	default:
		a.place, a.closes = inStream, true
	}
	return used, nil
}

// asksToClose finds it in a head.
var asksToClose = regexp.MustCompile(`(?im)^connection:[ \t]*close[ \t]*\r?$`)

// unread is what is left of the bytes that were read from a connection.
type unread struct {
	left  []byte
	short bool
}

// Read fails when nothing is left.
func (u *unread) Read(into []byte) (int, error) {
	if len(u.left) == 0 {
		u.short = true
		return 0, errShort
	}
	n := copy(into, u.left)
	u.left = u.left[n:]
	return n, nil
}
