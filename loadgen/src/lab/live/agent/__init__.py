"""The long-lived agent of the lab: live client-side latency, trial marks, toxics in force."""
