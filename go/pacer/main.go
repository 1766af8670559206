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
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

const version = "1.5.0"

// How pacer ends.
const (
	ranToItsEnd = 0
	wentWrong   = 1
	wrongWords  = 2
	// bySignal and its number.
	bySignal = 128
)

func main() {
	os.Exit(pacer(os.Args[1:]))
}

func pacer(arguments []string) int {
	if len(arguments) == 1 && arguments[0] == "--version" {
		fmt.Println("pacer " + version)
		return ranToItsEnd
	}
	if len(arguments) > 2 && arguments[0] == "merge" {
		if err := merge(arguments[1:], os.Stdout); err != nil {
			return says(wentWrong, err)
		}
		return ranToItsEnd
	}
	if len(arguments) > 2 && arguments[0] == "spread" {
		status, err := spread(arguments[1], arguments[2:], os.Stdout)
		if err != nil {
			return says(status, err)
		}
		return status
	}
	if len(arguments) == 2 && arguments[0] == "serve" {
		if err := serve(arguments[1]); err != nil {
			return says(wentWrong, err)
		}
		return ranToItsEnd
	}
	if len(arguments) != 1 {
		return says(wrongWords, "one argument is allowed: the file of a load, - for standard input, or --version; or merge and 2 files or more; "+
			"or spread, a file and 1 HOST:PORT or more; or serve and a HOST:PORT")
	}
	text, err := wordsOf(arguments[0])
	if err != nil {
		return says(wrongWords, err)
	}
	l, err := readLoad(text)
	if err != nil {
		return says(wrongWords, err)
	}
	descriptors, err := descriptorsFor(l)
	if err != nil {
		return says(wrongWords, err)
	}
	parent := os.Getppid()
	// A reader that is gone is an error of writing.
	signal.Ignore(syscall.SIGPIPE)
	r, err := newRun(l, descriptors, os.Stdout)
	if err != nil {
		return says(wentWrong, err)
	}
	// A signal before this ends the process: names may take their time, and nothing was sent.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	status, err := r.do(signals, func() bool { return os.Getppid() != parent })
	if err != nil {
		return says(wentWrong, err)
	}
	return status
}

func says(status int, what any) int {
	fmt.Fprintln(os.Stderr, "pacer:", what)
	return status
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
	descriptors, err := raiseDescriptors()
	if err != nil {
		return 0, err
	}
	if most := descriptors - spareDescriptors; *l.words.Connections > most {
		return 0, fmt.Errorf("connections: at most %d are allowed by the limit of %d open files, not %d", most, descriptors, *l.words.Connections)
	}
	return descriptors, nil
}

// raiseDescriptors raises the limit on open files as far as allowed, and says what it is.
func raiseDescriptors() (int, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	limit.Cur = limit.Max
	return int(min(limit.Max, 1<<30)), unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
}
