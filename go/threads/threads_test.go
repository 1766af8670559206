package threads

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// process is a directory as /proc has one for each process.
type process struct {
	t         *testing.T
	directory string
}

func newProcess(t *testing.T) process { return process{t, t.TempDir()} }

// thread has run so long by now, and waited for a tenth of that.
func (p process) thread(id int, run time.Duration) {
	p.write(id, fmt.Sprintf("%d %d 7\n", run, run/10))
}

func (p process) write(id int, schedstat string) {
	task := filepath.Join(p.directory, "task", fmt.Sprint(id))
	if err := os.MkdirAll(task, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(task, "schedstat"), []byte(schedstat), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p process) end(id int) {
	if err := os.RemoveAll(filepath.Join(p.directory, "task", fmt.Sprint(id))); err != nil {
		p.t.Fatal(err)
	}
}

func (p process) expect(reader *Reader, run time.Duration) {
	p.t.Helper()
	if sum, known := reader.Read(); !known || sum != (Times{run, run / 10}) {
		p.t.Errorf("%v, known: %v; wanted %v", sum, known, run)
	}
}

func (p process) unknown(reader *Reader) {
	p.t.Helper()
	if sum, known := reader.Read(); known {
		p.t.Errorf("%v is known", sum)
	}
}

func TestSumsNeverFall(t *testing.T) {
	p := newProcess(t)
	p.thread(1, 5*time.Second)
	p.thread(2, 3*time.Second)
	reader := New(p.directory)
	p.expect(reader, 8*time.Second)
	p.end(2)
	p.thread(1, 6*time.Second)
	p.expect(reader, 9*time.Second)
	p.thread(3, time.Second)
	p.expect(reader, 10*time.Second)
	// The number of one that has ended is given again.
	p.thread(3, 400*time.Millisecond)
	p.expect(reader, 10400*time.Millisecond)
}

func TestWhatTheKernelDoesNotCountIsUnknown(t *testing.T) {
	p := newProcess(t)
	reader := New(p.directory)
	p.unknown(reader)
	p.write(1, "0 0 0\n")
	p.write(2, "0 0 0\n")
	p.unknown(reader)
	p.thread(2, time.Second)
	p.expect(reader, time.Second)
}

func TestAThreadThatCannotBeReadCountsOnce(t *testing.T) {
	p := newProcess(t)
	p.thread(1, time.Second)
	reader := New(p.directory)
	p.expect(reader, time.Second)
	p.thread(1, 2*time.Second)
	p.write(2, "-\n")
	p.unknown(reader)
	p.thread(2, time.Second)
	p.expect(reader, 3*time.Second)
}

func TestNoMoreThan256ThreadsAreRead(t *testing.T) {
	p := newProcess(t)
	for id := range most {
		p.thread(id+1, time.Second)
	}
	reader := New(p.directory)
	p.expect(reader, most*time.Second)
	p.thread(most+1, time.Second)
	p.unknown(reader)
}

func TestFindsAProcessByItsName(t *testing.T) {
	proc := t.TempDir()
	for id, name := range map[string]string{"1": "downstream", "17": "toxiproxy-cli", "23": "toxiproxy"} {
		if err := os.Mkdir(filepath.Join(proc, id), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, id, "comm"), []byte(name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if found := Find(proc, "toxiproxy"); found != filepath.Join(proc, "23") {
		t.Errorf("found %q", found)
	}
	if found := Find(proc, "prometheus"); found != "" {
		t.Errorf("found %q", found)
	}
}

func TestThisProcessHasRun(t *testing.T) {
	if text, err := os.ReadFile("/proc/self/schedstat"); runtime.GOOS != "linux" || err != nil || string(text) == "0 0 0\n" {
		t.Skip("this kernel does not count")
	}
	if sum, known := New("/proc/self").Read(); !known || sum.Run <= 0 || sum.Queue < 0 {
		t.Errorf("%v, known: %v", sum, known)
	}
}
