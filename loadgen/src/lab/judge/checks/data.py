"""Is the data there? What is missing, damaged, or too little to say anything."""

from lab.judge.checks.check import Found, check, stored
from lab.judge.checks.machine import by_others
from lab.judge.metrics import USED
from lab.judge.predict import needed_window_s
from lab.judge.trial import UNOBSERVED, Trial
from lab.model import TrialRecord, answered, needed_samples
from lab.model.routes import EXPORTER_PORT

# A rate is no better known than to twice this share where the delays of so few requests were drawn.
# The lab calls sides the same within 5 %, and looks for 7 % less than a bound.
RATE_ERROR = 0.025
# Enough for p95.
MIN_SAMPLES = needed_samples(0.95)
# Half of the second between two scrapes: what is further off is in another second of the window.
CLOCKS_APART_S = 0.5
JOBS = ("server", "jvm", "downstream", "toxiproxy", "cadvisor")

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
def clocks_apart(trial: Trial) -> Found:
    """Just before or after the load two clocks were surely more than {CLOCKS_APART_S:g} s apart, so
    a sample may be of another second than it says. Rates and latencies are the driver's own; what
    the parts did meanwhile is not known"""
    for clock in trial.record.clocks:
        if abs(clock.offset_s) - clock.uncertainty_s > CLOCKS_APART_S:
            offset_s, uncertainty_s = clock.offset_s, clock.uncertainty_s
            yield {"part": clock.of, "offset_s": offset_s, "uncertainty_s": uncertainty_s}
            return


@check("window-unobserved", "invalidates", "load", repeatable=True)
def window_unobserved(trial: Trial) -> Found:
    """Neither the generator's CPU time nor the JIT compile time could be read at the edges of the
    window: the engine may have ended before it began"""
    if trial.usage.window_cpu_s is None and _compiler_unread(trial.record):
        yield {}


@check("nothing-answered", "invalidates", "load", server_failed=True)
def nothing_answered(trial: Trial) -> Found:
    """No answer in the window, although the generator did its part. This is the server's
    finding"""
    if not trial.reading.samples:
        yield {}


@check("no-success", "invalidates", "answers", server_failed=True)
def no_success(trial: Trial) -> Found:
    """Only errors. This is the server's finding"""
    if not answered(trial.reading)[0]:
        yield {}


@check("window-short", "invalidates", "answers")
def window_short(trial: Trial) -> Found:
    """The window is shorter than {LEAST_LATENCIES:g} latencies ([drawn delays](delays.md): than
    {LEAST_LATENCIES:g} of those that the edges of a window meet). It is measured
    [once more](#measured-again) in the window that would do, if that is at most 60 s"""
    reading = trial.reading
    if reading.answer_ms is not None and reading.window_s < trial.least_window_s:
        latency_s = reading.answer_ms / 1000
        yield {
            "window_s": reading.window_s,
            "latency_s": latency_s,
            "times": trial.least_window_s / latency_s,
            "needed_s": needed_window_s(latency_s, trial.drawn, trial.before),
        }


@check("few-answers", "invalidates", "load", symptom=True)
def few_answers(trial: Trial) -> Found:
    """Fewer than {MIN_SAMPLES} answers without an error in the window"""
    good, failed = trial.answers
    if good < MIN_SAMPLES and (failed <= good or good + failed < MIN_SAMPLES):
        errors = {"errors": failed} if failed else {}
        yield {"answers": good, **errors, "needed": MIN_SAMPLES}


@check("mostly-errors", "invalidates", "load", server_failed=True, symptom=True)
def mostly_errors(trial: Trial) -> Found:
    """Fewer than {MIN_SAMPLES} answers without an error, and more errors than these: there is no
    p95. This is the server's finding"""
    good, failed = trial.answers
    if 0 < good < min(MIN_SAMPLES, failed) and good + failed >= MIN_SAMPLES:
        yield {"answers": good, "of": good + failed, "needed": MIN_SAMPLES}


@check("few-draws", "notes", "answers")
def few_draws(trial: Trial) -> Found:
    """With delays drawn for each call ([delays](delays.md)): two standard errors of their mean are
    more than twice {RATE_ERROR:.1%}. A verdict resolves that much less. A longer window, or more
    connections, draws more"""
    # An open load that keeps up has the rate that is offered.
    if trial.is_open and not trial.overloaded:
        return
    error = trial.rate_error(trial.reading.samples)
    if error > RATE_ERROR:
        yield {"draws": trial.reading.samples, "share": 2 * error}


@check("series-missing", "notes", "load")
def series_missing(trial: Trial) -> Found:
    """Prometheus did not answer"""
    if trial.observation is UNOBSERVED:
        yield {}


@check("unread", "notes", "load")
def unread(trial: Trial) -> Found:
    """Names the readings that checks lack"""
    usage = trial.usage
    told_apart = trial.has_contract and trial.observation is not UNOBSERVED
    readings = {
        "jit": not _compiler_unread(trial.record),
        "generator-cpu": usage.window_cpu_s is not None,
        "generator-waits": usage.window_wait_s is not None and usage.window_slices is not None,
        "generator-quota": usage.window_throttled_s is not None,
        "host-cpu": usage.host_taken is not None,
        "others-cpu": not told_apart or usage.host_taken is None or by_others(trial) is not None,
    }
    missing = [name for name, is_read in readings.items() if not is_read]
    if missing:
        yield {"readings": ",".join(missing)}


@check("exporter-assumed", "notes", "load")
def exporter_assumed(trial: Trial) -> Found:
    """`TARGET=`: the host of the exporter may run other things beside the service"""
    if trial.before.exported is None:
        return
    if "." in trial.server or not trial.observation.series(USED, service=trial.server):
        port = str(trial.before.settings.get("url", "")).rpartition(":")[2]
        yield {"server": trial.server, "exporter": EXPORTER_PORT, "port": port}


@check("measured-again", "notes")
def measured_again(trial: Trial) -> Found:
    """This trial [repeats](#measured-again) that one"""
    if trial.plan.repeats is not None:
        yield {"trial": trial.plan.repeats}


def jobs(record: TrialRecord) -> tuple[str, ...]:
    """The jobs that Prometheus should have scraped during a trial: of a service without the lab's
    contract its container, and its JVM where an exporter is scraped."""
    if record.before.identity is not None:
        return JOBS
    return ("jvm", "cadvisor") if record.before.scraped else ("cadvisor",)


def _compiler_unread(record: TrialRecord) -> bool:
    """True if the compile time of a JVM that reports itself is unknown."""
    reports = record.before.jvm_started_ms is not None
    return reports and record.jit_share is None and record.jit_cpu is None
