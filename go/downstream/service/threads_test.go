package service

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func writeProcess(t *testing.T, directory, name, schedstat string) {
	t.Helper()
	task := filepath.Join(directory, "task", "1")
	if err := os.MkdirAll(task, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{directory + "/comm": name, task + "/schedstat": schedstat} {
		if err := os.WriteFile(file, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTellsOfItsThreadsAndOfToxiproxys(t *testing.T) {
	proc := t.TempDir()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(NewThreadTimes(proc))
	expect := func(wanted map[string]float64) {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, family := range families {
			kind := strings.Split(family.GetName(), "_")[2]
			for _, metric := range family.GetMetric() {
				got[kind+" "+metric.GetLabel()[0].GetValue()] = metric.GetCounter().GetValue()
			}
		}
		if !maps.Equal(got, wanted) {
			t.Errorf("got %v, wanted %v", got, wanted)
		}
	}
	expect(map[string]float64{})
	writeProcess(t, proc+"/self", "downstream", "2000000000 500000000 9")
	// No counts, and a health check.
	writeProcess(t, proc+"/7", "toxiproxy", "0 0 0")
	writeProcess(t, proc+"/8", "toxiproxy-cli", "9000000000 9000000000 9")
	expect(map[string]float64{"run downstream": 2, "runq downstream": 0.5})
	writeProcess(t, proc+"/7", "toxiproxy", "4000000000 250000000 9")
	expect(map[string]float64{"run downstream": 2, "runq downstream": 0.5, "run toxiproxy": 4, "runq toxiproxy": 0.25})
	if err := os.RemoveAll(proc + "/7"); err != nil {
		t.Fatal(err)
	}
	expect(map[string]float64{"run downstream": 2, "runq downstream": 0.5})
	// It was started again.
	writeProcess(t, proc+"/9", "toxiproxy", "1000000000 0 9")
	expect(map[string]float64{"run downstream": 2, "runq downstream": 0.5, "run toxiproxy": 1, "runq toxiproxy": 0})
}
