// Tests of adding up what several processes told.
package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// Two processes with half of a load each are told as one, and nothing is lost: every bucket and count is their sum.
func TestProcessesAreMergedWithoutLoss(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Fails") != "" {
			w.WriteHeader(503)
		}
	}))
	defer server.Close()
	folder := t.TempDir()
	start := func(name string, headers map[string]string) func() outcome {
		file, err := os.Create(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		command := itself("pacer", "-")
		command.Stdin = bytes.NewReader(text(short("", map[string]any{"arrivals": poisson, "rate": 300, "connections": 20, "window_s": 1.5,
			"requests": []any{wish(map[string]any{"url": server.URL, "headers": headers})}})))
		command.Stdout = file
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		return func() outcome {
			_ = command.Wait()
			return understand(t, []byte(contents(filepath.Join(folder, name))))
		}
	}
	endA, endB := start("a", map[string]string{}), start("b", map[string]string{"X-Fails": "yes"})
	a, b := endA(), endB()
	merged := func(names ...string) (string, string) {
		var output, problems bytes.Buffer
		command := itself("pacer", "merge")
		for _, name := range names {
			command.Args = append(command.Args, filepath.Join(folder, name))
		}
		command.Stdout, command.Stderr = &output, &problems
		_ = command.Run()
		return output.String(), problems.String()
	}
	write := func(name, of, old, new string) {
		changed := strings.Replace(contents(filepath.Join(folder, of)), old, new, 1)
		if err := os.WriteFile(filepath.Join(folder, name), []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// How far apart they began is the machine's; here they began at once.
	_, rest, _ := strings.Cut(contents(filepath.Join(folder, "a")), `"unix_s":`)
	began, _, _ := strings.Cut(rest, ",")
	_, rest, _ = strings.Cut(contents(filepath.Join(folder, "b")), `"unix_s":`)
	other, _, _ := strings.Cut(rest, ",")
	write("b", "b", other, began)
	output, problems := merged("a", "b")
	if problems != "" {
		t.Fatal(problems)
	}
	m := understand(t, []byte(output))
	if m.sum.Statuses["200"] != a.sum.Ok || m.sum.Statuses["503"] != b.sum.HTTPErrors || m.sum.Due != a.sum.Due+b.sum.Due || m.last.Unfinished != a.last.Unfinished+b.last.Unfinished {
		t.Errorf("%+v is not %+v and %+v", m.sum, a.sum, b.sum)
	}
	for i, second := range m.seconds {
		of := func(l line) []told { return []told{l.Raw, l.Failed, l.Late, *l.Corrected} }
		for k, whole := range of(second) {
			x, y := of(a.seconds[i])[k], of(b.seconds[i])[k]
			counts := map[int64]int64{}
			for _, one := range append(x.Buckets, y.Buckets...) {
				counts[one[0]] += one[1]
			}
			got := map[int64]int64{}
			for _, one := range whole.Buckets {
				got[one[0]] += one[1]
			}
			if !reflect.DeepEqual(got, counts) || whole.Sum != x.Sum+y.Sum || whole.Max != max(x.Max, y.Max) {
				t.Errorf("second %d: %+v is not %+v and %+v", i, whole, x, y)
			}
		}
	}
	write("late", "b", began, "1.5")
	write("long", "b", `"window_s":1.5`, `"window_s":2.5`)
	write("stopped", "b", `"ended":"complete"`, `"ended":"interrupted"`)
	write("gap", "b", `"second":1,`, `"second":2,`)
	whole := contents(filepath.Join(folder, "b"))
	write("half", "b", whole, whole[:len(whole)/2])
	for name, part := range map[string]string{"late": "s after", "long": "another warm-up, window", "stopped": "did not run to its end", "gap": "other seconds", "half": "second", "none": "no such file"} {
		if _, problems := merged("a", name); strings.Count(problems, "\n") != 1 || !strings.Contains(problems, part) {
			t.Errorf("%s: %q", name, problems)
		}
	}
}
