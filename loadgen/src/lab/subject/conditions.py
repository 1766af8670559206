"""Changes the lab to the condition of each trial, and in the end back to how it was found.

A JVM is warmed up without the part of a condition that can be changed while it runs (knobs,
toxics, CPU limits): that part would make the warm-up slow, or impossible. So a condition comes in
two steps: first `at_start`, which a JVM must be started with, then all of it.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from lab.errors import LabError, LabUnreachable
from lab.model import Condition, Remark, ToxicState
from lab.model.knobs import GENERATOR, GENERATOR_CPUS, STARTS_AS, starting
from lab.model.toxics import ToxicsInForce, parse_toxic
from lab.subject.changes import Change, Container, Journal, Toxics, after, values_of
from lab.subject.subject import Subjects
from lab.system.host import Clock
from lab.system.host_changes import HostChanges
from lab.system.stack import Stack
from lab.system.toxiproxy import toxic_state


def at_start(condition: Condition) -> Condition:
    """The part of a condition that a JVM must be started with."""
    return Condition(host=starting(condition.host))


class Conditions:
    """Changes only what differs from the condition in force. One thread; call `restore` at the end
    in any case.

    Knobs go back to what was read of a server before its first change, unless the JVM takes them
    from a setting of its container. The user's own toxics stay in force.
    """

    def __init__(
        self,
        stack: Stack,
        subjects: Subjects,
        host: HostChanges,
        journal: Journal,
        clock: Clock,
        unhurried: Clock | None = None,
    ) -> None:
        self._stack = stack
        self._subjects = subjects
        self._journal = journal
        self._clock = clock
        self._unhurried = unhurried or Clock()
        self._containers = {name: Container(name, host) for name in (*subjects, GENERATOR)}
        # The servers that were changed, with their knobs. None: it has none.
        self._changed: dict[str, Change | None] = {}
        self._toxics = Change(Toxics(stack.toxiproxy), journal)
        # What was in force without any condition when that was first read.
        self._user_has: ToxicState | None = None

    @property
    def as_it_is(self) -> bool:
        as_found = self._toxics.as_found and self._containers[GENERATOR].has == {}
        return as_found and not self._changed

    def recreates(self, server: str, condition: Condition) -> bool:
        """True if the condition takes a new JVM of this server, or may take one."""
        return self._containers[server].replaces(condition.host)

    def bring(self, server: str, condition: Condition) -> None:
        """Change the lab to this condition, for a trial of this server. Raises LabError; what is
        in force then is read by the next `bring`, or by `restore`."""
        for other in [name for name in self._changed if name != server]:
            # One that is away costs its own trials, not this one: the next call tries again.
            with suppress(LabUnreachable):
                self._put_back(other, self._clock)
        self._bring_toxics(condition.toxics)
        if condition.host or condition.knobs:
            self.keep_knobs(server)
            self._bring_host(server, condition.host, self._clock)
            self._bring_knobs(server, condition.knobs)
        elif server in self._changed:
            self._put_back(server, self._clock)
        self._limit_generator(condition.generator_cpus, self._clock)

    def keep_knobs(self, server: str) -> None:
        """Before its JVM is replaced: the next `bring` turns its knobs to what they are now, or
        were before they were changed."""
        if server not in self._changed:
            carrier = self._subjects[server].knobs
            knobs = Change(carrier, self._journal) if carrier else None
            if knobs:
                knobs.keep()
            self._changed[server] = knobs

    def keep_toxics(self) -> ToxicsInForce:
        """The toxics in force, while no condition's are: they must be the user's, as they were when
        this was first called. Raises LabUnreachable if they are not: a trial with other toxics
        than the trials it is compared with would count."""
        in_force = self._stack.toxiproxy.in_force()
        now = toxic_state(in_force)
        if self._user_has is None:
            self._user_has = now
        if now != self._user_has:
            has, had = (", ".join(state.in_force) or "none" for state in (now, self._user_has))
            raise LabUnreachable(f"toxiproxy: in force is {has}; trials before had {had}")
        return in_force

    def free_generator(self) -> None:
        """Lift the CPU limit of the driver's own container: no load runs between trials."""
        self._limit_generator(None, self._clock)

    def restore(self) -> list[Remark]:
        """Put everything back as it was found, also after an interrupt, and then what else is left
        in the journal. Whatever fails, the others are tried; what could not be put back, and what
        was left."""
        parts: list[Callable[[], object]] = [
            partial(self._limit_generator, None, self._unhurried),
            self._toxics.undo,
            *(partial(self._put_back, server, self._unhurried) for server in self._changed),
        ]
        remarks = []
        for part in parts:
            try:
                part()
            except Exception as failure:
                remarks.append(Remark("not-restored", {"problem": str(failure)}))
        try:
            left = self._journal.put_back(self._stack)
        except LabError as failure:
            left = Remark("not-restored", {"problem": str(failure)})
        return [*remarks, *([left] if left else [])]

    def _put_back(self, server: str, clock: Clock) -> None:
        self._bring_host(server, {}, clock)
        if knobs := self._changed[server]:
            knobs.undo()
        del self._changed[server]

    def _bring_host(self, server: str, wanted: Mapping[str, str], clock: Clock) -> None:
        container, subject = self._containers[server], self._subjects[server]
        replaces = container.replaces(wanted)
        # If a change of it failed, it may be another JVM already: then any will do.
        known = replaces and container.has is not None
        before_ms = subject.started_ms() if known else None
        container.bring(wanted, clock)
        if replaces:
            subject.await_another(before_ms, clock)

    def _bring_knobs(self, server: str, wanted: Mapping[str, int]) -> None:
        if knobs := self._changed[server]:
            has = self._containers[server].has or {}
            settings = has if starting(has) else {}
            started_as = {knob for name in settings for knob in STARTS_AS.get(name, ())}
            knobs.bring({(server, name): n for name, n in wanted.items()}, leave=started_as)

    def _bring_toxics(self, wanted: tuple[Mapping[str, str], ...]) -> None:
        """Raises LabUnreachable also as `keep_toxics`."""
        self._toxics.undo()
        if wanted or self._user_has is not None:
            now = self.keep_toxics()
            self._toxics.apply(after(now, map(parse_toxic, wanted)), values_of(now))

    def _limit_generator(self, cpus: float | None, clock: Clock) -> None:
        settings = {} if cpus is None else {GENERATOR_CPUS: f"{cpus:g}"}
        self._containers[GENERATOR].bring(settings, clock)
