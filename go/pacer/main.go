// pacer puts a load of HTTP requests on a service and tells, second by second, what came of it.
//
//	pacer LOAD.json    the load is in this file, or on standard input (-)
//	pacer merge A.jsonl B.jsonl …    adds up what several told that ran at the same time
//	pacer spread LOAD.json HOST:PORT …    the load from here and from those where pacer serves, added up
//	pacer serve HOST:PORT    takes loads there, one at a time, from whoever reaches it
//	pacer --version
//
// docs/pacer.md has the words of a load and of what is told.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

const version = "1.6.0"

// How pacer ends.
const (
	ranToItsEnd = 0
	wentWrong   = 1
	wrongWords  = 2
	// bySignal and its number.
	bySignal = 128
)

func main() {
	status, err := pacer(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "pacer:", err)
	}
	os.Exit(status)
}

// pacer returns the status that the process ends with.
func pacer(arguments []string) (int, error) {
	switch count := len(arguments); {
	case count == 1 && arguments[0] == "--version":
		fmt.Println("pacer " + version)
		return ranToItsEnd, nil
	case count > 2 && arguments[0] == "merge":
		return ended(merge(arguments[1:], os.Stdout))
	case count > 2 && arguments[0] == "spread":
		return spread(arguments[1], arguments[2:], os.Stdout)
	case count == 2 && arguments[0] == "serve":
		return ended(serve(arguments[1]))
	case count != 1:
		return wrongWords, errors.New("one argument is allowed: the file of a load, - for standard input, or --version; or merge and 2 files or more; " +
			"or spread, a file and 1 HOST:PORT or more; or serve and a HOST:PORT")
	}
	text, err := wordsOf(arguments[0])
	if err != nil {
		return wrongWords, err
	}
	l, err := readLoad(text)
	if err != nil {
		return wrongWords, err
	}
	descriptors, err := descriptorsFor(l)
	if err != nil {
		return wrongWords, err
	}
	parent := os.Getppid()
	// A reader that is gone is an error of writing.
	signal.Ignore(syscall.SIGPIPE)
	r, err := newRun(l, descriptors, os.Stdout)
	if err != nil {
		return wentWrong, err
	}
	// A signal before this ends the process: names may take their time, and nothing was sent.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	return r.do(signals, func() bool { return os.Getppid() != parent })
}

// ended is how a verb ends that knows one kind of failure.
func ended(err error) (int, error) {
	if err != nil {
		return wentWrong, err
	}
	return ranToItsEnd, nil
}

func wordsOf(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(name)
}

// spareDescriptors are for all but connections.
const spareDescriptors = 256

// descriptorsFor is the limit on open files, raised as far as allowed, which leaves enough for a load.
func descriptorsFor(l *load) (int, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	limit.Cur = limit.Max
	descriptors := int(min(limit.Max, 1<<30))
	if most := descriptors - spareDescriptors; *l.words.Connections > most {
		return 0, fmt.Errorf("connections: at most %d are allowed by the limit of %d open files, not %d", most, descriptors, *l.words.Connections)
	}
	return descriptors, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
}
