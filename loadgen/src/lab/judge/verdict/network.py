"""The network between the parts of the lab: what TCP had to send again because it was lost.

A link that is full drops packets, and a bad one loses them. Linux sends an answer of one segment
again after 200 ms (TCP_RTO_MIN; RFC 6298 has 1 s), so such a loss makes one request that much
later. A network that neither drops nor loses anything is only as slow as its round trips, which
are part of R0 (`predict.response_time_ms`).
"""

from __future__ import annotations

from lab.judge.verdict.evidence import SeenTrial, kept
from lab.model import Evidence, Standing

# From this share of the answers on p95 is that of an answer of which something was sent again, and
# from the second on p99 is.
OF_P95, OF_P99 = 0.05, 0.01
# Fewer may be a moment's.
LEAST = 10
# What is sent again makes an answer so much later, but for some jitter of the kernel's timers.
RESENT_S = 0.19
_DRIVER = "raw/<trial>/trial.json, usage"


def network(seen: SeenTrial) -> Standing | None:
    """What was sent again by the server and by the driver's generator, in their network namespaces,
    beside the answers. A full accept queue drops, too: attempts to connect are left out, and all
    that was sent again to a queue that overflowed. The evidence is strong where p95 is as late as a
    segment that is sent again makes it, and the CPUs were free: on busy ones TCP may send again
    what was only late. What Toxiproxy and further generators send again nobody tells. None where
    nothing is known of the server's."""
    mine = {"server": seen.server}
    every = seen.total("sent again", "segments", "lab_kernel_tcp_retransmits_total", **mine)
    syn = seen.total("attempts", "segments", "lab_kernel_tcp_syn_retransmits_total", **mine)
    if every is None or syn is None:
        return None
    on_the_path = seen.observation.increase("lab_path_listen_overflows_total")
    by_server = Evidence(
        "sent again by the server",
        0.0 if on_the_path else max(0.0, every.value - syn.value),
        "segments",
        f"{every.source} - {syn.source}",
    )
    overflows = seen.observation.increase("lab_kernel_listen_overflows_total", **mine)
    resent = None if overflows != 0 else seen.record.usage.window_resent
    by_generator = None
    if resent is not None:
        by_generator = Evidence("sent again by the generator", resent, "segments", _DRIVER)
    again = by_server.value + (resent or 0.0)
    answers = seen.reading.achieved_rps * seen.window_s
    share = again / answers if answers > 0 else 0.0
    score = 0.0
    if again >= LEAST and (share >= OF_P99 or not answers):
        score = 0.9 if share >= OF_P95 and _felt(seen) and not seen.crowded else 0.6
    sentence = f"the network: {again:,.0f} segments were sent again, {by_server.value:,.0f} of them"
    sentence += " by the server"
    if answers > 0:
        sentence += f"; {share:.2g} for each answer"
    return Standing(
        "network",
        saturation=share,
        waiting="segments sent again for each answer",
        score=score,
        sentence=sentence,
        evidence=kept(by_server, by_generator),
    )


def _felt(seen: SeenTrial) -> bool:
    """Whether p95 is as late as it is where a segment is sent again."""
    # From sending on: what waits in the generator is not on its way.
    latency = seen.reading.raw or seen.reading.corrected
    if latency is None or latency.p95_ms is None:
        return False
    return latency.p95_ms / 1000 >= seen.p95_r0_s + RESENT_S
