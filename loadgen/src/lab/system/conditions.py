"""Changes the lab to the condition of each trial, and in the end back to how it was found.

A JVM is warmed up without the part of a condition that can be changed while it runs (knobs,
toxics, CPU limits): that part would make the warm-up slow, or impossible. So a condition comes in
two steps: first `at_start`, which a JVM must be started with, then all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from lab.errors import LabError, LabUnreachable
from lab.model import Condition, ToxicState
from lab.model.knobs import GENERATOR, GENERATOR_CPUS, LIVE, STARTS_AS, knobs_of
from lab.model.toxic_script import applied, concerns
from lab.model.toxic_words import parse_toxic
from lab.model.toxics import ToxicsInForce
from lab.system.host import Clock
from lab.system.host_changes import HostChanges
from lab.system.jvm import another_jvm, answers_again
from lab.system.stack import Stack
from lab.system.toxiproxy import toxic_state
from lab.system.undo_log import NOT_PUT_BACK, UndoLog

# Stands for "no JVM was running".
NONE_RAN = -1


def at_start(condition: Condition) -> Condition:
    """The part of a condition that a JVM must be started with."""
    return Condition(host=starting(condition.host))


def starting(host: Mapping[str, str]) -> dict[str, str]:
    """The settings that take another JVM: all but the CPU limit, which is changed live."""
    return {name: value for name, value in host.items() if name != LIVE}


@dataclass(slots=True)
class _Server:
    """A server that was changed: its knobs as they were found, and what its container has. None: a
    change of it failed half-way, so nothing tells what it has."""

    found: Mapping[str, int]
    host: Mapping[str, str] | None = field(default_factory=dict)


class Conditions:
    """Changes only what differs from the condition in force. One thread; call `restore` at the end
    in any case.

    Knobs go back to what was read of a server before its first change, unless the JVM takes them
    from a setting of its container. The user's own toxics stay in force. Knobs and toxics are in
    the undo log while they are changed.
    """

    def __init__(
        self,
        stack: Stack,
        host_changes: HostChanges,
        clock: Clock,
        unhurried: Clock | None = None,
        undo_log: UndoLog | None = None,
    ) -> None:
        self._stack = stack
        self._undo_log = undo_log or UndoLog(None)
        self._host_changes = host_changes
        self._clock = clock
        self._unhurried = unhurried or Clock()
        self._servers: dict[str, _Server] = {}
        # None: a change of them failed half-way, so nothing tells what is in force.
        self._toxics: tuple[Mapping[str, str], ...] | None = ()
        # What was in force without any condition when that was first asked, and what was with the
        # one that is.
        self._user_has: ToxicState | None = None
        self._left: ToxicState | None = None
        self._before: ToxicsInForce | None = None
        self._touched: tuple[tuple[str, str], ...] = ()
        self._generator: float | None = None

    @property
    def as_it_is(self) -> bool:
        return not self._servers and self._toxics == () and self._generator is None

    def recreates(self, server: str, condition: Condition) -> bool:
        """Whether the condition takes a new JVM of this server, or may take one."""
        state = self._servers.get(server)
        has = state.host if state else {}
        return has is None or starting(has) != starting(condition.host)

    def bring(self, server: str, condition: Condition) -> None:
        """Change the lab to this condition, for a trial of this server. Raises LabError; what is
        in force then is found out by the next `bring`, or by `restore`."""
        for other in [name for name in self._servers if name != server]:
            # One that is away costs its own trials, not this one: the next call tries again.
            with suppress(LabUnreachable):
                self._put_back(other, self._clock)
        self._bring_toxics(condition.toxics)
        if condition.host or condition.knobs:
            self.keep_knobs(server)
            self._bring_host(server, condition.host, self._clock)
            self._bring_knobs(server, condition.knobs)
        elif server in self._servers:
            self._put_back(server, self._clock)
        self._bring_generator(condition.generator_cpus, self._clock)

    def keep_knobs(self, server: str) -> None:
        """Before its JVM is replaced: the next `bring` turns its knobs to what they are now, or
        were before they were changed."""
        if server not in self._servers:
            self._servers[server] = _Server(self._knobs(server))

    def keep_toxics(self) -> ToxicsInForce:
        """The toxics in force, while no condition's are: they must be the user's, as they were when
        this was first called. Raises LabUnreachable where they are not: a trial with other toxics
        than the trials it is compared with would count."""
        in_force = self._stack.toxiproxy.in_force()
        now = toxic_state(in_force)
        if self._user_has is None:
            self._user_has = now
        if now != self._user_has:
            has, had = (", ".join(one.in_force) or "none" for one in (now, self._user_has))
            raise LabUnreachable(f"toxiproxy: in force is {has}; trials before had {had}")
        return in_force

    def free_generator(self) -> None:
        """Lift the CPU limit of the driver's own container: no load runs between trials."""
        self._bring_generator(None, self._clock)

    def restore(self) -> list[str]:
        """Put everything back as it was found, also after an interrupt, and then what else is left
        in the undo log. Returns a line for each part that could not be put back, and for what was
        left; whatever fails, the others are tried."""
        parts: list[Callable[[], None]] = [
            partial(self._bring_generator, None, self._unhurried),
            self._take_back_toxics,
            *(partial(self._put_back, server, self._unhurried) for server in self._servers),
        ]
        problems = []
        for part in parts:
            try:
                part()
            except Exception as failure:
                problems.append(f"the lab {NOT_PUT_BACK} as it was: {failure}")
        try:
            left = self._undo_log.put_back(self._stack)
        except LabError as failure:
            left = f"the lab {NOT_PUT_BACK} as it was: {failure}"
        return [*problems, *([left] if left else [])]

    def _put_back(self, server: str, clock: Clock) -> None:
        self._bring_host(server, {}, clock)
        self._bring_knobs(server, {})
        self._undo_log.knobs_back(server, self._servers[server].found)
        del self._servers[server]

    def _bring_host(self, server: str, wanted: Mapping[str, str], clock: Clock) -> None:
        state, foreign = self._servers[server], self._stack.is_foreign(server)
        had = state.host
        if had is not None and dict(had) == dict(wanted):
            return
        fresh = had is None or starting(had) != starting(wanted)
        # Whether it was replaced by a change that failed nobody knows: then any JVM will do.
        known = fresh and not foreign and had is not None
        before = self._start_time(server) if known else NONE_RAN
        state.host = None
        self._host_changes.change(server, wanted, clock)
        state.host = {**wanted}
        if foreign:
            answers_again(server, self._stack, clock)
        elif fresh:
            another_jvm(server, before, self._stack, clock)

    def _start_time(self, server: str) -> int:
        try:
            return self._stack.management.identity(server).start_time_ms
        except LabUnreachable:
            return NONE_RAN  # It died of its condition.

    def _bring_knobs(self, server: str, wanted: Mapping[str, int]) -> None:
        if self._stack.is_foreign(server):
            return
        state = self._servers[server]
        started_as: set[str] = set()
        host = state.host or {}
        if starting(host):
            for name in host:
                started_as.update(STARTS_AS.get(name, ()))
        found = {name: value for name, value in state.found.items() if name not in started_as}
        now = self._stack.management.settings(server)
        change = {n: v for n, v in {**found, **wanted}.items() if now.get(n) != v}
        for name, value in change.items():
            if name in state.found:
                self._undo_log.knob(server, name, state.found[name], value)
        if change:
            self._stack.management.change_knobs(server, change)

    def _knobs(self, server: str) -> dict[str, int]:
        """Those the model has; none of a foreign service."""
        if self._stack.is_foreign(server):
            return {}
        return knobs_of(self._stack.management.settings(server))

    def _bring_toxics(self, wanted: tuple[Mapping[str, str], ...]) -> None:
        """Have these in force. They are read back each time: a Toxiproxy that was restarted has
        none. Raises LabUnreachable also as `keep_toxics`."""
        toxiproxy = self._stack.toxiproxy
        same = self._toxics is not None and [*map(dict, self._toxics)] == [*map(dict, wanted)]
        if same and wanted and toxic_state(toxiproxy.in_force()) == self._left:
            return
        self._take_back_toxics()
        if not wanted and self._user_has is None:
            return
        before = self.keep_toxics()
        if wanted:
            requests = [parse_toxic(words) for words in wanted]
            self._toxics = None
            self._before = expected = before
            self._touched = tuple(dict.fromkeys(concerns(request) for request in requests))
            for request in requests:
                expected = applied(expected, request)
                self._undo_log.toxic(concerns(request), before, expected)
                toxiproxy.apply(request)
            self._left = toxic_state(toxiproxy.in_force())
            self._toxics = tuple(wanted)

    def _take_back_toxics(self) -> None:
        self._toxics = None
        if self._before is not None:
            after = self._stack.toxiproxy.restore(self._before, self._touched)
            self._undo_log.toxics_back(self._touched, after)
            self._before, self._touched = None, ()
        self._toxics = ()

    def _bring_generator(self, wanted: float | None, clock: Clock) -> None:
        if self._generator == wanted:
            return
        settings = {} if wanted is None else {GENERATOR_CPUS: f"{wanted:g}"}
        # Equal to no limit: a change that failed may be half done.
        self._generator = math.nan
        self._host_changes.change(GENERATOR, settings, clock)
        self._generator = wanted
