"""Closes the connections that earlier servers left at Toxiproxy, before the next one is measured.

A server keeps idle connections to the downstream for a minute, some frameworks for longer. Each
takes two of Toxiproxy's descriptors and some of its memory, so a few servers at 5,000 connections
use them up; and a proxy that cannot accept for want of descriptors never accepts again (2.12.0
leaves its accept loop at the first error: proxy.go), so that the next server gets nothing at all.
Taking a proxy down and up closes all of its connections and has it listen again.
"""

from lab.errors import LabUnreachable
from lab.model import Remark
from lab.model.toxics import WHOLE_PROXY
from lab.subject.changes import Change, Journal, Toxics
from lab.subject.subject import await_answer
from lab.system.host import Clock
from lab.system.stack import Stack

# The share of its descriptors that does no harm.
CROWDED = 0.05
# The agent looks every second: it must have seen the proxy up again before a load begins.
LOOK_S = 1.5
# Beyond what the downstream and the toxics add.
ANSWER_S = 3.0
# A Toxiproxy that closes thousands of connections may not answer meanwhile.
UP_S = 60.0
POLL_S = 1.0


def clear_proxy(stack: Stack, clock: Clock, journal: Journal) -> Remark | None:
    """Cut the connections that are left over, if they take more than a CROWDED share of its
    descriptors, or the proxy no longer answers. Toxics stay; a proxy that is down stays down.
    Returns what the user should know. Raises LabUnreachable if a proxy did not come up again.
    """
    try:
        toxics = stack.toxics()
        delay_ms, spread = stack.downstream.delay()
        longest_ms = spread.longest_ms if spread else delay_ms
        deadline_s = ANSWER_S + (longest_ms + toxics.added_latency_ms) / 1000
        used, most = stack.toxiproxy.files()
        crowded = used > CROWDED * most
        # If toxics break calls, an answer that does not come shows nothing.
        deaf = not toxics.unpredicted and not stack.toxiproxy.answers(deadline_s)
    except LabUnreachable:
        return None
    if crowded or deaf:
        for proxy in stack.toxiproxy.in_force().proxies:
            if proxy.enabled:
                down = Change(Toxics(stack.toxiproxy), journal)
                try:
                    down.apply({(proxy.name, WHOLE_PROXY): False})
                finally:
                    await_answer(down.undo, clock, UP_S, POLL_S)
        clock.sleep(LOOK_S)
    return Remark("proxy-deaf") if deaf else None
