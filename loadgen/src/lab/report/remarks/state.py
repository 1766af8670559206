"""The texts of what `lab.judge.checks.state`, `steady` and `machine` find."""

from __future__ import annotations

from lab.report.remarks.text import says

_RESTORE = "restore it, or start a new run"
_CRASH = "look for a crash or an out-of-memory exit"
_WARM_LONGER = "use a longer window, or more cores"
_DIRECT = "its calls go to the downstream without Toxiproxy (SERVER_DOWNSTREAM_URL)"


def _cycle(number: int) -> tuple[str, str, str]:
    return (
        f"?{': ' if number == 1 else ', then '}{{rps_{number}:.0f}} req/s",
        f"?, p50 {{p50_ms_{number}:.0f}} ms",
        f"?, JIT {{jit_{number}:.2f}} s/s",
    )


TEXTS = {
    "server-gone": says(
        "the server did not answer after the load: {problem}",
        do="look at the container's log; it may have crashed or hung",
    ),
    "server-not-back": says(
        "the server did not come back: {problem}",
        do="look at the container's log; it may crash again and again",
    ),
    "unequal-limits": says(
        "unequal limits: {limit} {servers}",
        do="make `.env` and `compose.yaml` equal for all servers",
    ),
    "cold-unsteady": says(
        "cold JVM: not steady within {limit_s:.0f} s",
        *_cycle(1),
        *_cycle(2),
        *_cycle(3),
        do="use a quieter machine or fewer connections",
    ),
    "cold-silent": says(
        "cold JVM: nothing was answered without an error for {elapsed_s:.0f} s of warm-up",
        do="check that the server works",
    ),
    "cold-restarted": says("cold JVM: the JVM restarted during the warm-up", do=_CRASH),
    "cold-replaced": says("cold JVM: its JVM was replaced after it was warmed up", do=_CRASH),
    "cold-exporter": says(
        "cold JVM: the JMX exporter stopped answering during the warm-up", do="check the exporter"
    ),
    "cold-engine": says(
        "cold JVM: the load engine ended early: {words}", do="read its last line after the colon"
    ),
    "cold-load": says("cold JVM: {problem}", do="read the message"),
    "unsettled": says("the server still had requests in flight long after the load"),
    "script-left": says("the scripted toxics could not be taken back: {problem}"),
    "wrong-server": says(
        "wrong server: {answered} answered under the name {planned}",
        do="rebuild with `make up`; check `compose.yaml`",
    ),
    "jvm-restarted": says("the JVM restarted during the trial", do=_CRASH),
    "changed": says(
        "{what} changed during the trial",
        "?: {was} became {now}",
        do="set toxics, delays and settings before the run, and leave the containers alone",
    ),
    "settings-unread": says(
        "settings that the server did not tell after the trial any more: {settings}",
        do="look for the first reason of the trial, and at `NOFILE`",
    ),
    "toxics-touched": says(
        "toxics changed during the trial: {changes}", do="set toxics before the run"
    ),
    "differs": says("{what} differs from the start: {was} became {now}", do=_RESTORE),
    "not-in-force": says(
        "the trial's condition was not in force: {setting} was to be {asked}, and the server has "
        "{has}",
        do="see who changed containers during the run; the host's part of it (`make`) may have "
        "been killed",
    ),
    "toxics-passed-by": says(
        f"its toxics did not reach it: {_DIRECT}", do="set `SERVER_DOWNSTREAM_URL` back"
    ),
    "without-toxiproxy": says(f"no toxic was in force: {_DIRECT}"),
    "toxics-unwatched": says(
        "the toxics were not watched from {began} to {ended}",
        do="see whether the agent or Toxiproxy restarted",
    ),
    "toxics-unwatched-briefly": says("the toxics were not watched from {began} to {ended}"),
    "script-failed": says(
        "the script failed at step {step}, {change}: {problem}",
        do="read the message after the colon",
    ),
    "script-late": says(
        "step {step} of the script, {change}, was {late_s:.1f} s late",
        do="lower the load, or use a quieter machine",
    ),
    "script-short": says(
        "only {made} of {planned} steps of the script were made",
        do="look for the first reason of the trial",
    ),
    "compiling": says(
        "cold JVM: the JIT compiler ran for ",
        "?{cpu_s:.3f} s of CPU time",
        "?{elapsed_s:.2f} s",
        "?{busy_s:.2f} s, waits for a CPU included,",
        " per second of the window (allowed {allowed_s:.3f} s)",
        do="use a longer warm-up (`WARMUP=`) or window, or more cores",
    ),
    "goodput-drift": says(
        "not steady: goodput went from {first_rps:.0f} to {second_rps:.0f} req/s between the "
        "halves of the window",
        do="use a quieter machine; measure longer",
    ),
    "latency-drift": says(
        "not steady: the mean latency went from {first_ms:.0f} to {second_ms:.0f} ms between the "
        "halves of the window",
        do="use a quieter machine, or a longer warm-up (`WARMUP`)",
    ),
    "server-silent": says(
        "the server stopped answering for {silence_s:.1f} s of the window",
        do="look at the container's log; look for a deadlock, a full heap, a paused container",
    ),
    "server-paused": says("the server stopped answering for {silence_s:.1f} s of the window"),
    "machine-away": says(
        "a machine of the lab was away: {machine} gave Prometheus no answer for {gap_s:.0f} s",
        do="look at the machine and the way to it",
    ),
    "part-restarted": says(
        "a part of the lab was restarted during the trial: {part!w}",
        do="look at its log: it crashed, or somebody restarted it",
    ),
    "downstream-late": says(
        "the downstream was late by {late_ms:.0f} ms at p95 (allowed {allowed_ms:.0f} ms)"
    ),
    "part-throttled": says(
        "{part!w} was stopped by its CPU quota for {throttled_s:.1f} s of the window",
        do="raise its quota",
    ),
    "part-full": says(
        "{part!w} used all of its {cpus:.0f} CPUs", do="lower the load, or use more cores"
    ),
    "others-cpu": says("work outside the lab used {share:.0%} of CPUs that were short"),
    "host-full": says("the host's CPU was {busy:.0%} busy: these numbers are this machine's limit"),
    "host-steal": says("the host lost {share:.0%} of its CPU to other machines (steal)"),
}
