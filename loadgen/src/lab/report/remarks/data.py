"""The texts of what `lab.judge.checks.data` finds."""

from __future__ import annotations

from lab.report.remarks.text import says

TEXTS = {
    "damaged": says(
        "damaged: {problem}",
        do="read the message; check the free disk space; run it again",
    ),
    "not-begun": says(
        "the trial could not begin: ",
        "?a machine of the lab was away: {machines}; ",
        "{problem}",
        do="look at the log of the part that the message names; `RESUME=` goes on",
    ),
    "engine-overtime": says(
        "{engine} did not end within {overtime_s:.0f} s after its time, and was stopped",
        do="run it again",
    ),
    "warm-up-overtime": says(
        "{engine} did not end its warm-up in time, and was stopped", do="run it again"
    ),
    "engine-failed": says(
        "{engine} ended with status {status}: {words}",
        do="read that line; check the free disk space",
    ),
    "engine-killed": says(
        "{engine} was killed by {signal}: {words}", do="look for an out-of-memory kill"
    ),
    "lab-unreadable": says(
        "the lab could not be read after the load: {problem}",
        do="look at the log of the part that the message names",
    ),
    "wrk2-uncalibrated": says(
        "wrk2 calibrated {calibrated} of its {threads} threads: the latencies include the warm-up",
        do="give the generator more CPU",
    ),
    "clock-set": says(
        "the clock of the machine was set during the trial: it took {took_s:.1f} s, and "
        "{wall_s:.1f} s by the wall clock",
        do="stop what sets the clock",
    ),
    "clocks-apart": says(
        "the clocks of the lab were apart: that of {part} was {offset_s:+.1f} s off the driver's "
        "(± {uncertainty_s:.1f} s)",
        do="on several machines let chrony or NTP set the clocks; on one machine all parts have "
        "one clock",
    ),
    "window-unobserved": says(
        "the window was not observed: neither the generator's CPU time nor the JIT compile time "
        "could be read at its edges",
        do="look for the first reason of the trial",
    ),
    "nothing-answered": says("nothing was answered in the measured window", do="check the server"),
    "no-success": says(
        "no answer was a success: there is no latency of answers",
        do="look at the server's log; check its downstream and its timeout",
    ),
    "window-short": says(
        "the window is too short: {window_s:.0f} s for a mean latency of {latency_s:.2f} s, and it "
        "must be {times:.3g} times as long (DURATION={needed_s}s would do)",
        do="give the `DURATION` that it says, or none",
    ),
    "few-answers": says(
        "too few answers: {answers}",
        "? without an error, beside {errors} with one",
        ", and p95 needs {needed}",
        do="use a longer window, or more load",
    ),
    "mostly-errors": says(
        "most answers were errors, and too few were a success: {answers} of {of:,}, and p95 needs "
        "{needed}",
        do="look at the server's log; a rate limiter, an overload or a wrong request",
    ),
    "few-draws": says(
        "{draws:,} delays were drawn: by that alone the rate and the mean latency of such a window "
        "vary by ±{share:.0%}"
    ),
    "series-missing": says("the window's series are missing: Prometheus did not answer"),
    "unread": says("not checked, as it could not be read in the window: {readings!w}"),
    "warmth-unproven": says(
        "warm-up was not proven: its JIT compile time is unknown (no JMX exporter at "
        "{server}:{port} that prometheus/own.json lists)",
        "?, and {problem}",
    ),
    "exporter-assumed": says(
        "assumed: the JMX exporter on {server}:{exporter} is that of the service on port {port}"
    ),
    "measured-again": says("measured again: {trial} was invalid"),
    "percentiles-left-out": says(
        "from p{percentile} on left out: {samples} samples, p{percentile} needs {needed}"
    ),
    "latencies-mixed": says(
        "no latencies: up to {errors:,} of {answers:,} answers were errors, and this engine does "
        "not tell their latencies apart (allowed {allowed:.1%})"
    ),
    "errors-of-run": says(
        "wrk2 counts errors of its whole run, warm-up included: {least:.1%} to {most:.1%} of the "
        "window's answers were successes, and goodput takes the run's {run:.1%}"
    ),
    "live-heap-unread": says("the live heap is not known: {problem}"),
    "memory-unread": says("the memory is not known: {problem}"),
    "load-ended-early": says("the load ended while the memory was read"),
    "proxy-files": says(
        "Toxiproxy had {used:,.0f} of {most:,.0f} files open, and the calls take {needed:,}: it "
        "may not have accepted all"
    ),
    "target-answered": says("{answer}"),
}
