// Where an answer ends: HTTP/1.x, as far as a client that keeps its connections needs it.
package main

import (
	"bytes"
	"errors"
)

const (
	// headBytes is the longest head of an answer.
	headBytes = 64 << 10
	// sizeDigits is the longest size of a chunk: what an int64 holds.
	sizeDigits = 15
)

var errProtocol = errors.New("not an answer of HTTP/1.x")

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
	// found is how much of the text that the body has to have was found, and so ends what was read of it.
	found int
	// closes is whether the connection ends after it.
	closes bool
}

// read goes on in an answer to a request. It allocates nothing, and returns what it did not use:
// part of a head, of which more has to come, or what follows the answer. It is true when the answer is whole.
func (a *answer) read(data []byte, r *request) ([]byte, bool, error) {
	for len(data) > 0 {
		switch a.place {
		case inHead:
			used, err := a.readHead(data, r.headless)
			if used == 0 || err != nil {
				return data, false, err
			}
			data = data[used:]
			if a.place == inBody && a.left == 0 {
				return data, true, nil
			}
		case inBody, inChunk:
			used := min(a.left, int64(len(data)))
			a.found = r.expect.seek(a.found, data[:used])
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
			a.found = r.expect.seek(a.found, data)
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

// readHead reads the next head, which data begins with, and says how long it is: 0 if it is not all there.
func (a *answer) readHead(data []byte, headless bool) (int, error) {
	status, version, used := 0, byte('1'), 0
	length, chunked, closes, keeps := int64(-1), false, false, false
	for first := true; ; first = false {
		end := bytes.IndexByte(data[used:], '\n')
		if end < 0 {
			if len(data) >= headBytes {
				return 0, errProtocol
			}
			return 0, nil
		}
		line := bytes.TrimSuffix(data[used:used+end], []byte("\r"))
		used += end + 1
		if first {
			var ok bool
			if status, version, ok = statusOf(line); !ok {
				return 0, errProtocol
			}
			continue
		}
		if len(line) == 0 {
			break
		}
		name, value, there := bytes.Cut(line, []byte(":"))
		if !there {
			return 0, errProtocol
		}
		switch len(name) {
		case len("Connection"):
			if bytes.EqualFold(name, []byte("Connection")) {
				closes = closes || names(value, "close")
				keeps = keeps || names(value, "keep-alive")
			}
		case len("Content-Length"):
			if bytes.EqualFold(name, []byte("Content-Length")) {
				if length = number(bytes.TrimSpace(value)); length < 0 {
					return 0, errProtocol
				}
			}
		case len("Transfer-Encoding"):
			if bytes.EqualFold(name, []byte("Transfer-Encoding")) {
				chunked = names(value, "chunked")
			}
		}
	}
	if status < 200 {
		// An interim answer. The answer follows.
		return used, nil
	}
	*a = answer{status: status, closes: closes || version == '0' && !keeps}
	switch {
	case headless || status == 204 || status == 304:
		a.place = inBody
	case chunked:
		a.place = inSize
	case length >= 0:
		a.place, a.left = inBody, length
	default:
		a.place, a.closes = inStream, true
	}
	return used, nil
}

// statusOf reads "HTTP/1.1 200 OK": the status, and the digit after the version's point.
func statusOf(line []byte) (status int, version byte, ok bool) {
	const form = "HTTP/1.x 200"
	if len(line) < len(form) || string(line[:7]) != form[:7] || line[8] != ' ' || len(line) > len(form) && line[len(form)] != ' ' {
		return 0, 0, false
	}
	status = int(number(line[9:len(form)]))
	return status, line[7], status >= 100 && status != 101
}

// number reads digits; -1 is that there are others, or none, or too many.
func number(digits []byte) int64 {
	if len(digits) == 0 || len(digits) > 18 {
		return -1
	}
	sum := int64(0)
	for _, digit := range digits {
		if digit < '0' || digit > '9' {
			return -1
		}
		sum = sum*10 + int64(digit-'0')
	}
	return sum
}

// names is whether a list of words has this one, in capitals or not.
func names(list []byte, word string) bool {
	for len(list) > 0 {
		var one []byte
		one, list, _ = bytes.Cut(list, []byte(","))
		if bytes.EqualFold(bytes.TrimSpace(one), []byte(word)) {
			return true
		}
	}
	return false
}
