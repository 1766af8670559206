// Putting on loads for another machine: its share of a load comes by HTTP, and what comes of it goes back.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const (
	// mostLoad is how long a load's text may be.
	mostLoad = 16 << 20
	// headsWithin is how long whoever connects may take to say what is wanted.
	headsWithin = 10 * time.Second
	// turnWithin is how long a load waits for one that was just stopped to end: less than starts may be apart.
	turnWithin = 400 * time.Millisecond
)

// broken is the line in the place of the last one, where a process ended without it.
type broken struct {
	Failed string `json:"failed"`
}

// serve takes loads at an address, which it prints, one at a time, until a signal. Its errors are one line.
func serve(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	ended, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	fmt.Println(listener.Addr())
	server := &http.Server{Handler: &servant{ended, make(chan struct{}, 1)}, ReadHeaderTimeout: headsWithin}
	go func() {
		<-ended.Done()
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// servant answers GET with the version, and POST of a load with the lines of a process that puts it on. Whoever goes
// away ends the process.
type servant struct {
	ended context.Context
	// busy holds one thing while a load is put on.
	busy chan struct{}
}

func (s *servant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != "/":
		http.NotFound(w, r)
	case r.Method == http.MethodGet:
		fmt.Fprintln(w, "pacer "+version)
	case r.Method != http.MethodPost:
		http.Error(w, "GET and POST are allowed", http.StatusMethodNotAllowed)
	case !s.begins(r.Context()):
		http.Error(w, "another load is put on", http.StatusConflict)
	default:
		defer func() { <-s.busy }()
		s.put(w, r)
	}
}

// begins waits for the turn of a load, and is false where another one goes on.
func (s *servant) begins(going context.Context) bool {
	select {
	case s.busy <- struct{}{}:
		return true
	case <-time.After(turnWithin):
	case <-going.Done():
	}
	return false
}

func (s *servant) put(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostLoad))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	// Wrong words are refused before anything is told.
	l, err := readLoad(text)
	if err == nil && l.words.Hlog != nil {
		err = wrong{"hlog", "a folder for another machine"}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	going, stop := context.WithCancel(r.Context())
	defer stop()
	defer context.AfterFunc(s.ended, stop)()
	child := process(going, text)
	child.Stdout = &flushed{w, http.NewResponseController(w)}
	var said bytes.Buffer
	child.Stderr = &said
	if err := child.Run(); err != nil && going.Err() == nil {
		_ = writeLine(child.Stdout, broken{lastOf(said.String(), err)})
	}
}

// process is a process of this program that reads a load from its standard input. When the context ends it is told to.
func process(going context.Context, load []byte) *exec.Cmd {
	command := exec.CommandContext(going, "/proc/self/exe", "-")
	command.Args[0] = os.Args[0]
	command.Stdin = bytes.NewReader(load)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 2 * stopPatience
	return command
}

// lastOf is why a process ended: the last line of what it said, else the error.
func lastOf(said string, err error) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if last := strings.TrimPrefix(lines[len(lines)-1], "pacer: "); last != "" {
		return last
	}
	return err.Error()
}

// flushed sends each line as it comes.
type flushed struct {
	to      io.Writer
	control *http.ResponseController
}

func (f *flushed) Write(text []byte) (int, error) {
	n, err := f.to.Write(text)
	if err == nil {
		err = f.control.Flush()
	}
	return n, err
}
