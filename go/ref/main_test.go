package main

import "testing"

// Figures on file are comparable with those of this source only.
func TestSourceIsFrozen(t *testing.T) {
	const frozen = "b30f89280d82"
	measured, err := measure()
	if err != nil {
		t.Fatal(err)
	}
	if measured.Source != frozen {
		t.Errorf("source %s, frozen %s: every ref on file is of another program now", measured.Source, frozen)
	}
}

func TestEveryProbeCounts(t *testing.T) {
	measured, err := measure()
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]struct {
		probe
		threads int
	}{
		"compute_one": {measured.ComputeOne, 1}, "compute_all": {measured.ComputeAll, measured.CPUs},
		"wake": {measured.Wake, 2}, "net": {measured.Net, 2},
	} {
		if p.Count == 0 || p.CPUSeconds <= 0 || p.Seconds < probeTime.Seconds() {
			t.Errorf("%s: %+v", name, p.probe)
		}
		// The clock of a thread may run ahead of the wall's by a tick.
		if most := float64(p.threads)*p.Seconds + 0.02; p.CPUSeconds > most {
			t.Errorf("%s: %v s of CPU by %d threads in %v s", name, p.CPUSeconds, p.threads, p.Seconds)
		}
	}
}
