"""Closes the connections that earlier servers left at Toxiproxy, before the next one is measured.

A server keeps idle connections to the downstream for a minute, some frameworks for longer. Each
takes two of Toxiproxy's descriptors and some of its memory, so a few servers at 5,000 connections
use them up; and a proxy that cannot accept for want of descriptors never accepts again (2.12.0
leaves its accept loop at the first error: proxy.go), so that the next server gets nothing at all.
Taking a proxy down and up closes all of its connections and has it listen anew.
"""

from __future__ import annotations

from lab.errors import LabUnreachable
from lab.model.toxic_script import WHOLE_PROXY, applied
from lab.model.toxic_words import Enable
from lab.system.host import Clock
from lab.system.stack import Stack
from lab.system.toxiproxy import Toxiproxy
from lab.system.undo_log import UndoLog

# The share of its descriptors that does no harm.
CROWDED = 0.05
# The agent looks every second: it must have seen the proxy up again before a load begins.
LOOK_S = 1.5
# Beyond what the downstream and the toxics add.
ANSWER_S = 3.0
# A Toxiproxy that closes thousands of connections may not answer meanwhile.
UP_S = 60.0
POLL_S = 1.0


def clear_proxy(stack: Stack, clock: Clock, undo_log: UndoLog) -> str | None:
    """Cut the connections that are left over, if they take more than a CROWDED share of its
    descriptors, or the proxy no longer answers. A proxy is in the undo log while it is down for
    that.

    Returns what the user should know; None when all was well. Toxics stay; a proxy that is down
    stays down. Raises LabUnreachable where a proxy did not come up again.
    """
    try:
        toxics = stack.toxics()
        delay_ms, spread = stack.downstream_delay()
        longest_ms = spread.longest_ms if spread else delay_ms
        deadline_s = ANSWER_S + (longest_ms + toxics.added_latency_ms) / 1000
        used, most = stack.toxiproxy.files()
        crowded = used > CROWDED * most
        # Where toxics break calls, an answer that does not come tells nothing.
        deaf = not toxics.unpredicted and not stack.toxiproxy.answers(deadline_s)
    except LabUnreachable:
        return None
    if crowded or deaf:
        _cut_proxies(stack, clock, undo_log)
        clock.sleep(LOOK_S)
    if deaf:
        return "Toxiproxy did not answer any more: its proxies were taken down and up again"
    return None


def _cut_proxies(stack: Stack, clock: Clock, undo_log: UndoLog) -> None:
    """Close every connection through Toxiproxy: each proxy that is up is taken down and up again;
    its toxics stay. Raises LabUnreachable where one does not come up within UP_S."""
    toxiproxy = stack.toxiproxy
    found = toxiproxy.in_force()
    for proxy in found.proxies:
        if not proxy.enabled:
            continue
        item, down = (proxy.name, WHOLE_PROXY), Enable(proxy.name, enabled=False)
        undo_log.toxic(item, found, applied(found, down))
        try:
            toxiproxy.apply(down)
        finally:
            _bring_up(toxiproxy, proxy.name, clock)
        undo_log.toxics_back([item], toxiproxy.in_force())


def _bring_up(toxiproxy: Toxiproxy, name: str, clock: Clock) -> None:
    until = clock.monotonic() + UP_S
    while True:
        try:
            toxiproxy.enable(name, enabled=True)
        except LabUnreachable:
            if clock.monotonic() >= until:
                raise
            clock.sleep(POLL_S)
        else:
            return
