// Tests of a load that several machines put on: here several processes.
package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestSharesAddUp(t *testing.T) {
	t.Parallel()
	l, err := readLoad(text(short("http://a/", map[string]any{"arrivals": poisson, "connections": 8, "loops": 3, "connect_per_s": 4, "seed": 5,
		"profile": []any{map[string]any{"for_s": 1, "from": 80, "to": 160}}, "rate": nil})))
	if err != nil {
		t.Fatal(err)
	}
	connections, from, pace := 0, 0.0, 0.0
	seeds := map[uint64]bool{}
	for _, one := range sharesOf(l.words, 3) {
		if *one.Connections < 2 || *one.Loops > *one.Connections || *one.Profile[0].For != 1 || *one.Profile[0].To != 2**one.Profile[0].From {
			t.Errorf("%+v", one)
		}
		connections += *one.Connections
		from += *one.Profile[0].From
		pace += *one.ConnectPerS
		seeds[*one.Seed] = true
	}
	if connections != 8 || from != 80 || pace != 4 || len(seeds) != 3 || *l.words.Connections != 8 || *l.words.Profile[0].From != 80 {
		t.Errorf("%d connections, from %v/s, %v connected a second, seeds %v; was changed to %+v", connections, from, pace, seeds, l.words)
	}
	if few := sharesOf(l.words, 20); len(few) != 8 {
		t.Errorf("%d shares of 8 connections", len(few))
	}
}

func TestWhoFallsSilentIsFoundOut(t *testing.T) {
	t.Parallel()
	place, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer place.Close()
	connection, err := far.Transport.(*http.Transport).DialContext(t.Context(), "tcp", place.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	raw, err := connection.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	of := map[int]int{syscall.SO_KEEPALIVE: 0, syscall.TCP_KEEPIDLE: 0, syscall.TCP_KEEPINTVL: 0, syscall.TCP_KEEPCNT: 0}
	err = raw.Control(func(fd uintptr) {
		for option := range of {
			level := syscall.IPPROTO_TCP
			if option == syscall.SO_KEEPALIVE {
				level = syscall.SOL_SOCKET
			}
			of[option], _ = syscall.GetsockoptInt(int(fd), level, option)
		}
	})
	if longest := of[syscall.TCP_KEEPIDLE] + of[syscall.TCP_KEEPCNT]*of[syscall.TCP_KEEPINTVL]; err != nil || of[syscall.SO_KEEPALIVE] == 0 || longest > 10 {
		t.Error("found out after", longest, "s", of, err)
	}
}

// servants are processes that serve, and where.
func servants(t *testing.T, count int) ([]*exec.Cmd, []string) {
	t.Helper()
	var processes []*exec.Cmd
	var places []string
	for range count {
		command := itself("pacer", "serve", "127.0.0.1:0")
		output, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
		place, err := bufio.NewReader(output).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		processes, places = append(processes, command), append(places, strings.TrimSpace(place))
	}
	return processes, places
}

// spreading is a spread load whose lines are in a file, and the folder of its files.
func spreading(t *testing.T, load map[string]any, places ...string) (*exec.Cmd, *bytes.Buffer, string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "load.json"), text(load), 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := os.Create(filepath.Join(folder, "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	command := itself("pacer", append([]string{"spread", filepath.Join(folder, "load.json")}, places...)...)
	var problems bytes.Buffer
	command.Stdout, command.Stderr = output, &problems
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return command, &problems, folder
}

func quick(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	return server.URL
}

// linesOf waits until the output has so many lines.
func linesOf(t *testing.T, folder string, lines int) {
	t.Helper()
	for strings.Count(contents(filepath.Join(folder, "output")), "\n") < lines {
		time.Sleep(20 * time.Millisecond)
	}
}

func TestALoadIsPutOnFromSeveralMachinesAndNothingIsLost(t *testing.T) {
	t.Parallel()
	_, places := servants(t, 2)
	command, problems, folder := spreading(t, short(quick(t), map[string]any{"arrivals": constant, "rate": 300, "connections": 7, "window_s": 2}), places...)
	if err := command.Wait(); err != nil || problems.Len() > 0 {
		t.Fatal(err, problems.String())
	}
	whole := understand(t, []byte(contents(filepath.Join(folder, "output"))))
	due, ok, buckets := 0, 0, 0
	for _, name := range append([]string{here}, places...) {
		one := understand(t, []byte(contents(filepath.Join(folder, "pacer-"+strings.ReplaceAll(name, ":", "-")+".jsonl"))))
		due += one.sum.Due
		ok += one.sum.Ok
		for _, second := range one.seconds {
			for _, bucket := range second.Raw.Buckets {
				buckets += int(bucket[1])
			}
		}
		if one.sum.Due < 170 || one.sum.Due > 260 {
			t.Errorf("%s: %d of 600 requests", name, one.sum.Due)
		}
	}
	for _, second := range whole.seconds {
		for _, bucket := range second.Raw.Buckets {
			buckets -= int(bucket[1])
		}
	}
	if whole.sum.Due != due || whole.sum.Ok != ok || buckets != 0 || due < 597 || due > 603 || whole.last.Ended != "complete" {
		t.Errorf("%+v is not the sum of %d due and %d ok, or %d latencies differ", whole.sum, due, ok, buckets)
	}
}

func TestAMachineThatDiesIsNamed(t *testing.T) {
	t.Parallel()
	processes, places := servants(t, 2)
	command, problems, folder := spreading(t, short(quick(t), map[string]any{"arrivals": constant, "rate": 100, "window_s": 600}), places...)
	linesOf(t, folder, 2)
	if err := processes[1].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err == nil || strings.Count(problems.String(), "\n") != 1 || !strings.HasPrefix(problems.String(), "pacer: "+places[1]+": second ") {
		t.Error(err, problems.String())
	}
	isFree(t, places[0])
}

// The kernel of a machine goes on where its pacer does not: one that was stopped, and one that never says a word, are given up.
func TestAMachineThatSaysNothingIsNamed(t *testing.T) {
	t.Parallel()
	processes, places := servants(t, 1)
	mute, _ := plain(t, "127.0.0.1:0", func(_ *net.TCPConn, reader *bufio.Reader) {
		_, _ = io.Copy(io.Discard, reader)
	})
	load := short(quick(t), map[string]any{"arrivals": constant, "rate": 100, "window_s": 600})
	for place, stop := range map[string]func(folder string){
		places[0]: func(folder string) {
			linesOf(t, folder, 2)
			_ = processes[0].Process.Signal(syscall.SIGSTOP)
		},
		mute: func(string) {},
	} {
		command, problems, folder := spreading(t, load, place)
		stop(folder)
		if err := command.Wait(); err == nil || strings.Count(problems.String(), "\n") != 1 || !strings.HasPrefix(problems.String(), "pacer: "+place+": ") || !strings.HasSuffix(problems.String(), "told nothing for 10s\n") {
			t.Error(err, problems.String())
		}
	}
}

// isFree waits until a servant takes a load again.
func isFree(t *testing.T, place string) {
	t.Helper()
	for {
		answer, err := http.Post("http://"+place+"/", "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusBadRequest {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestASpreadLoadThatIsStoppedTellsWhatWasTold(t *testing.T) {
	t.Parallel()
	_, places := servants(t, 1)
	command, problems, folder := spreading(t, short(quick(t), map[string]any{"arrivals": constant, "rate": 100, "window_s": 600}), places...)
	linesOf(t, folder, 3)
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	o := understand(t, []byte(contents(filepath.Join(folder, "output"))))
	if status := command.ProcessState.ExitCode(); status != 143 || problems.Len() > 0 || o.last.Ended != "interrupted" || len(o.seconds) < 2 {
		t.Errorf("%d %q %+v", status, problems.String(), o.last)
	}
	isFree(t, places[0])
}

func TestAMachineThatRefusesIsNamed(t *testing.T) {
	t.Parallel()
	_, places := servants(t, 1)
	url := quick(t)
	busy, _, folder := spreading(t, short(url, map[string]any{"arrivals": constant, "rate": 10, "window_s": 600}), places...)
	linesOf(t, folder, 2)
	for place, part := range map[string]string{places[0]: "refused: another load is put on", "127.0.0.1:1": "refused"} {
		command, problems, _ := spreading(t, short(url, nil), place)
		if err := command.Wait(); err == nil || strings.Count(problems.String(), "\n") != 1 || !strings.HasPrefix(problems.String(), "pacer: "+place) || !strings.Contains(problems.String(), part) {
			t.Error(err, problems.String())
		}
	}
	_ = busy.Process.Signal(syscall.SIGTERM)
	_ = busy.Wait()
}

func TestAServantTakesNoFolder(t *testing.T) {
	t.Parallel()
	_, places := servants(t, 1)
	answer, err := http.Post("http://"+places[0]+"/", "application/json", bytes.NewReader(text(short("http://a/", map[string]any{"hlog": t.TempDir()}))))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusBadRequest {
		t.Error(answer.Status)
	}
}
