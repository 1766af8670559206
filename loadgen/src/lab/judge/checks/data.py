"""Is the data there? What is missing, damaged, or too little to say anything."""

from collections.abc import Iterator

from lab.judge.checks.check import Evidence, Found, check, stored
from lab.judge.predict import rate_error
from lab.judge.quantities import (
    by_others,
    drawn_call,
    in_window,
    least_window_s,
    needed_window_s,
    overloaded,
    window_is_short,
)
from lab.model import Observation, TrialRecord, answered, needed_samples
from lab.model.routes import EXPORTER_PORT

# A rate is no better known than to twice this share where the delays of so few requests were drawn.
# The lab calls sides the same within 5 %, and looks for 7 % less than a bound.
RATE_ERROR = 0.025
# Enough for p95.
MIN_SAMPLES = needed_samples(0.95)
# Half of the second between two scrapes: what is further off is in another second of the window.
CLOCKS_APART_S = 0.5
JOBS = ("server", "jvm", "downstream", "toxiproxy", "cadvisor")
# The jobs of a service that is not the lab's: `jvm` only where a JMX exporter is scraped.
JOBS_FOREIGN = ("jvm", "cadvisor")

damaged = stored("damaged", "invalidates")
not_begun = stored("not-begun", "invalidates", repeatable=True)
lab_unreadable = stored("lab-unreadable", "invalidates")
engine_overtime = stored("engine-overtime", "invalidates")
engine_failed = stored("engine-failed", "invalidates")
engine_killed = stored("engine-killed", "invalidates")
wrk2_uncalibrated = stored("wrk2-uncalibrated", "invalidates", repeatable=True)
clock_set = stored("clock-set", "invalidates", repeatable=True)
warmth_unproven = stored("warmth-unproven", "notes")
percentiles_left_out = stored("percentiles-left-out", "notes")
latencies_mixed = stored("latencies-mixed", "notes")
errors_of_run = stored("errors-of-run", "notes")
live_heap_unread = stored("live-heap-unread", "notes")
memory_unread = stored("memory-unread", "notes")
load_ended_early = stored("load-ended-early", "notes")
proxy_files = stored("proxy-files", "notes")
target_answered = stored("target-answered", "notes")


@check("clocks-apart", "invalidates")
def clocks_apart(evidence: Evidence) -> Found:
    """Just before or after the load two clocks were surely more than {CLOCKS_APART_S:g} s apart, so
    a sample may be of another second than it says. Rates and latencies are the driver's own; what
    the parts did meanwhile is not known"""
    for clock in evidence.record.clocks:
        if abs(clock.offset_s) - clock.uncertainty_s > CLOCKS_APART_S:
            yield {
                "part": clock.of,
                "offset_s": clock.offset_s,
                "uncertainty_s": clock.uncertainty_s,
            }
            return


@check("window-unobserved", "invalidates", "load", repeatable=True)
def window_unobserved(evidence: Evidence) -> Found:
    """Neither the generator's CPU time nor the JIT compile time could be read at the edges of the
    window: the engine may have ended before it began"""
    if evidence.record.usage.window_cpu_s is None and compiler_unread(evidence.record):
        yield {}


@check("nothing-answered", "invalidates", "load", server_failed=True)
def nothing_answered(evidence: Evidence) -> Found:
    """No answer in the window, although the generator did its part. This is the server's
    finding"""
    if not evidence.reading.samples:
        yield {}


@check("no-success", "invalidates", "answers", server_failed=True)
def no_success(evidence: Evidence) -> Found:
    """Only errors. This is the server's finding"""
    if not answered(evidence.reading)[0]:
        yield {}


@check("window-short", "invalidates", "answers")
def window_short(evidence: Evidence) -> Found:
    """The window is shorter than {LEAST_LATENCIES:g} latencies ([drawn delays](delays.md): than
    {LEAST_LATENCIES:g} of those that the edges of a window meet). It is measured
    [once more](#measured-again) in the window that would do, if that is at most 60 s"""
    record, reading = evidence.record, evidence.reading
    if window_is_short(record, reading) and reading.answer_ms is not None:
        latency_s = reading.answer_ms / 1000
        yield {
            "window_s": reading.window_s,
            "latency_s": latency_s,
            "times": least_window_s(record, reading) / latency_s,
            "needed_s": needed_window_s(latency_s, drawn_call(record), record.before),
        }


@check("few-answers", "invalidates", "load", symptom=True)
def few_answers(evidence: Evidence) -> Found:
    """Fewer than {MIN_SAMPLES} answers without an error in the window"""
    good, failed = in_window(evidence.reading)
    if good < MIN_SAMPLES and (failed <= good or good + failed < MIN_SAMPLES):
        errors = {"errors": failed} if failed else {}
        yield {"answers": good, **errors, "needed": MIN_SAMPLES}


@check("mostly-errors", "invalidates", "load", server_failed=True, symptom=True)
def mostly_errors(evidence: Evidence) -> Found:
    """Fewer than {MIN_SAMPLES} answers without an error, and more errors than these: there is no
    p95. This is the server's finding"""
    good, failed = in_window(evidence.reading)
    if 0 < good < min(MIN_SAMPLES, failed) and good + failed >= MIN_SAMPLES:
        yield {"answers": good, "of": good + failed, "needed": MIN_SAMPLES}


@check("few-draws", "notes", "answers")
def few_draws(evidence: Evidence) -> Found:
    """With delays drawn for each call ([delays](delays.md)): two standard errors of their mean are
    more than twice {RATE_ERROR:.1%}. A verdict resolves that much less. A longer window, or more
    connections, draws more"""
    record, reading = evidence.record, evidence.reading
    call = drawn_call(record)
    # An open load that keeps up has the rate that is offered.
    if call is None or (record.plan.mode == "open" and not overloaded(record, reading)):
        return
    error = rate_error(call, record.before, reading.samples)
    if error > RATE_ERROR:
        yield {"draws": reading.samples, "share": 2 * error}


@check("series-missing", "notes", "load")
def series_missing(evidence: Evidence) -> Found:
    """Prometheus did not answer"""
    if evidence.observation is None:
        yield {}


@check("unread", "notes", "load")
def unread(evidence: Evidence) -> Found:
    """Names the readings that checks lack"""
    record, usage, seen = evidence.record, evidence.record.usage, evidence.observation
    measured = seen is not None and not record.before.foreign and usage.host_taken is not None
    known = {
        "jit": not compiler_unread(record),
        "generator-cpu": usage.window_cpu_s is not None,
        "generator-waits": usage.window_wait_s is not None and usage.window_slices is not None,
        "generator-quota": usage.window_throttled_s is not None,
        "host-cpu": usage.host_taken is not None,
        "others-cpu": not measured or by_others(record, seen) is not None,
    }
    if not all(known.values()):
        yield {"readings": ",".join(name for name, is_known in known.items() if not is_known)}


@check("exporter-assumed", "notes", "load")
def exporter_assumed(evidence: Evidence) -> Found:
    """`TARGET=`: the host of the exporter may run other things beside the service"""
    server, before = evidence.record.plan.server, evidence.record.before
    if not before.foreign or before.exported is None:
        return
    container = evidence.observation is not None and evidence.observation.series(
        "container_cpu_usage_seconds_total", service=server
    )
    if "." in server or not container:
        port = str(before.settings.get("url", "")).rpartition(":")[2]
        yield {"server": server, "exporter": EXPORTER_PORT, "port": port}


@check("measured-again", "notes")
def measured_again(evidence: Evidence) -> Found:
    """This trial [repeats](#measured-again) that one"""
    if evidence.record.plan.repeats is not None:
        yield {"trial": evidence.record.plan.repeats}


def jobs(record: TrialRecord) -> tuple[str, ...]:
    """The jobs that Prometheus should have scraped during a trial."""
    if not record.before.foreign:
        return JOBS
    return JOBS_FOREIGN if record.before.scraped else JOBS_FOREIGN[1:]


def jobs_unseen(record: TrialRecord, observation: Observation) -> Iterator[str]:
    """Those of them of which Prometheus did not see the whole window."""
    return (job for job in jobs(record) if not observation.covers(job))


def compiler_unread(record: TrialRecord) -> bool:
    """Whether the compile time of a JVM is unknown that should report it: a foreign service needs a
    JMX exporter for that."""
    reports = not record.before.foreign or record.before.exported is not None
    return reports and record.jit_share is None and record.jit_cpu is None
