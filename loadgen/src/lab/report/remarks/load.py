"""The texts of what `lab.judge.checks.load` and `held` find."""

from __future__ import annotations

from lab.report.remarks.text import says

_QUIETER = "lower the load, or use a quieter machine"
_OWN_CORES = "give it its own cores, or lower the load"
_FEWER = "use fewer connections"

TEXTS = {
    "generator-exhausted": says(
        "the generator was the limit: it had no {what} left, and failed to connect {count:,} times",
        do=_FEWER,
    ),
    "wrk2-connections": says(
        "wrk2 opened {opened} of {planned} connections: they do not divide by {threads} threads",
        do="choose another number of connections",
    ),
    "generator-full": says(
        "the generator was the limit: it used {used:.1f} of its {cores} cores",
        do="lower the load, or give it more cores ([CPU sets](method.md#cpu-sets))",
    ),
    "generator-throttled": says(
        "the generator was starved: its CPU quota stopped it for {throttled_s:.1f} s of the "
        "{window_s:.0f} s window",
        do="raise its CPU quota",
    ),
    "generator-starved": says(
        "the generator was starved: its threads waited {wait_ms:.1f} ms for each turn on a CPU "
        "(allowed {allowed_ms:.1f} ms)",
        do=_OWN_CORES,
    ),
    "generator-began-late": says(
        "the generator began its load late: {late_s:.1f} s after its process, by which the window "
        "is placed",
        do="see what kept it: names that resolve slowly, a machine that is full",
    ),
    "generator-late": says(
        "the generator sent late, by {late_ms:.1f} ms ({figure}; allowed {allowed_ms:.1f} ms)",
        "?: machine {machine}",
        do=_OWN_CORES,
    ),
    "generator-thinks": says(
        "the generator was starved: its threads waited for a CPU for {share:.1%} of each cycle of "
        "a connection, before they sent its next request (allowed {allowed:.0%})",
        "?: machine {machine}",
        do=_OWN_CORES,
    ),
    "generator-short": says(
        "the generator did not offer its rate: {ended_rps:.0f} of {of_rps} req/s",
        "?, with {busy:.0%} of its connections busy",
        do="use more connections, or lower the rate",
    ),
    "spikes-missing": says(
        "only {made} of {planned} spikes were produced",
        do="look for the first reason of the trial",
    ),
    "spike-length": says(
        "spike {spike} lasted {length_s:.1f} s instead of {planned_s} s", do=_QUIETER
    ),
    "spike-flawed": says(
        "spike {spike} was not as planned",
        "?: the generator had no {what} left, and failed to connect {count:,} times",
        "?: {problem}",
        do=f"{_FEWER}, or read the message",
    ),
    "spike-sparse": says(
        "spike {spike} was no crowd: on average the generator had not tried to open {untried:.0f} "
        "of its {extra} connections yet",
        do=_QUIETER,
    ),
    "spike-late": says(
        "spike {spike} was sent late, by {late_ms:.0f} ms or more for 5 %", do=_QUIETER
    ),
    "backlog": says(
        "the window began with a backlog: {answered_rps:.0f} req/s were answered and "
        "{offered_rps:.0f} offered, so the corrected latencies include waits from the warm-up",
        do="use a longer warm-up, or a lower rate",
    ),
    "littles-law": says(
        "Little's law does not hold: {answered_rps:.0f} req/s × {each_s!t} s = {busy!t} busy "
        "connections, and {planned} were planned (tolerance {tolerance:.0%})",
        "?: connections were lost, or the generator took {missing_ms!t} ms between an answer and "
        "the next request, which only pacer tells",
        do="check that all connections opened; of a quick service, take `ENGINE=pacer`",
    ),
    "above-bound": says(
        "faster than the bound: {goodput_rps:.0f} req/s, and at most {bound_rps:.0f} are possible "
        "(another server or a cache may have answered)",
        do="look for what answered",
    ),
    "overload": says(
        "overloaded: {answered_rps:.0f} of {offered_rps:.0f} req/s offered were answered, so "
        "corrected latencies grow with the run's length"
    ),
    "errors": says(
        "{share:.1%} of the answers were errors",
        "?, {unexpected:,} of them not as the subject expects",
        "; {latencies!w}",
    ),
    "without-answer": says(
        "{share:.1%} of the requests got no answer (socket errors, timeouts), and are in no latency"
    ),
    "never-answered": says(
        "{requests:,} requests more were due in the window than ended in it. They may never be "
        "answered, count as lost, and are in no latency"
    ),
    "generator-waited": says("the generator waited for a CPU for {share:.0%} of its cores' time"),
    "think-time": says(
        "the generator took {think_ms:.2g} ms between an answer and the connection's next request, "
        "{share:.0%} of each cycle: its think time Z, X = N / (R + Z)"
    ),
    "partly-late": says(
        "the {figure} is in part the generator's own: it sent {late_ms:.2f} ms late ({figure})"
    ),
    "socket-errors": says(
        "pacer: socket errors: {count} × {cause}, {in_window} of them in the window"
    ),
    "connect-failed": says(
        "pacer: attempts to connect failed: {count} × {cause}, {in_window} of them in the window"
    ),
    "unsent": says("pacer: {requests} requests were due and not yet sent when the load ended"),
    "connections-closed": says(
        "pacer: on average {opened:,.0f} of {planned:,} connections were open"
    ),
    "request-waits": says(
        "pacer: a request had waited for {waited_s:.1f} s when the window ended, and no answer "
        "took longer than {longest_s:.1f} s: who still waits is in no latency"
    ),
    "reopened": says(
        "pacer: connections were opened again {times:,} times in the window, which had {answers:,} "
        "answers"
    ),
    "spike-refused": says(
        "pacer: at most {opened:,} of {extra:,} connections of spike {spike} were open at a time"
    ),
    "spike-unsent": says(
        "pacer: {sent:,} of {due:,} requests of spike {spike} were sent, the others waited for a "
        "connection"
    ),
    "not-as-expected": says(
        "pacer: request {request} ({name}): {count} answers in the window were not as expected: "
        "status {status}",
        "? without {without!r}",
        "? where {statuses} is expected",
    ),
    "wrk2-attempts": says(
        "wrk2 failed {attempts} times to connect or to send (attempts, not a number of requests: "
        "it tries again at once)"
    ),
    "wrk2-waiting": says(
        "wrk2 found connections waiting above {timeout_s} s at {checks} checks (not a number of "
        "requests)"
    ),
    "wrk2-bursts": says(
        "wrk2 opened the connections of a thread at the same moment, so it sends in bursts"
    ),
    "held-unread": says(
        "the memory was not read while the connections were held",
        do="use a longer window, or fewer connections",
    ),
    "held-incomplete": says(
        "the held load was not as planned: {count} {what!w}, and {planned} were planned",
        do=f"look at the engine's notes; {_FEWER}",
    ),
}
