"""Changes the lab to the condition of each trial, and in the end back to how it was found.

A JVM is warmed up without the part of a condition that can be changed while it runs (knobs,
toxics, CPU limits): that part would make the warm-up slow, or impossible. So a condition comes in
two steps: first `at_start`, which a JVM must be started with, then all of it.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from lab.errors import LabError, LabUnreachable
from lab.model import Condition, Remark, ToxicState
from lab.model.knobs import GENERATOR, GENERATOR_CPUS, STARTS_AS, starting
from lab.model.toxics import ToxicsInForce, applied, concerns, parse_toxic
from lab.subject.changes import Change, Container, Journal, Toxics, values_of
from lab.subject.subject import Subject, Subjects
from lab.system.host import Clock
from lab.system.host_changes import HostChanges
from lab.system.stack import Stack
from lab.system.toxiproxy import toxic_state


def at_start(condition: Condition) -> Condition:
    """The part of a condition that a JVM must be started with."""
    return Condition(host=starting(condition.host))


@dataclass(frozen=True, slots=True)
class _Server:
    """A server that was changed. `knobs` None: it has none."""

    subject: Subject
    container: Container
    knobs: Change | None


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
        self._host = host
        self._journal = journal
        self._clock = clock
        self._unhurried = unhurried or Clock()
        self._servers: dict[str, _Server] = {}
        self._generator = Container(GENERATOR, host)
        self._toxics = Change(Toxics(stack.toxiproxy), journal)
        # What was in force without any condition when that was first read.
        self._user_has: ToxicState | None = None

    @property
    def as_it_is(self) -> bool:
        return not self._servers and self._toxics.as_found and self._generator.has == {}

    def recreates(self, server: str, condition: Condition) -> bool:
        """True if the condition takes a new JVM of this server, or may take one."""
        state = self._servers.get(server)
        container = state.container if state else Container(server, self._host)
        return container.replaces(condition.host)

    def bring(self, server: str, condition: Condition) -> None:
        """Change the lab to this condition, for a trial of this server. Raises LabError; what is
        in force then is read by the next `bring`, or by `restore`."""
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
        self._limit_generator(condition.generator_cpus, self._clock)

    def keep_knobs(self, server: str) -> None:
        """Before its JVM is replaced: the next `bring` turns its knobs to what they are now, or
        were before they were changed."""
        if server not in self._servers:
            subject = self._subjects[server]
            knobs = Change(subject.knobs, self._journal) if subject.knobs else None
            if knobs:
                knobs.keep()
            self._servers[server] = _Server(subject, Container(server, self._host), knobs)

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
            *(partial(self._put_back, server, self._unhurried) for server in self._servers),
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
        knobs = self._servers[server].knobs
        if knobs:
            knobs.undo()
        del self._servers[server]

    def _bring_host(self, server: str, wanted: Mapping[str, str], clock: Clock) -> None:
        state = self._servers[server]
        container, subject = state.container, state.subject
        replaces = container.replaces(wanted)
        # If a change of it failed, it may be another JVM already: then any will do.
        known = replaces and container.has is not None
        before_ms = subject.started_ms() if known else None
        container.bring(wanted, clock)
        if replaces:
            subject.await_another(before_ms, clock)

    def _bring_knobs(self, server: str, wanted: Mapping[str, int]) -> None:
        state = self._servers[server]
        if state.knobs is None:
            return
        has = state.container.has or {}
        settings = has if starting(has) else {}
        started_as = {knob for name in settings for knob in STARTS_AS.get(name, ())}
        state.knobs.bring({(server, name): n for name, n in wanted.items()}, leave=started_as)

    def _bring_toxics(self, wanted: tuple[Mapping[str, str], ...]) -> None:
        """Raises LabUnreachable also as `keep_toxics`."""
        self._toxics.undo()
        if not wanted and self._user_has is None:
            return
        before = expected = self.keep_toxics()
        requests = [parse_toxic(words) for words in wanted]
        for request in requests:
            expected = applied(expected, request)
        after = values_of(expected)
        items = dict.fromkeys(concerns(request) for request in requests)
        self._toxics.apply({item: after.get(item) for item in items}, values_of(before))

    def _limit_generator(self, cpus: float | None, clock: Clock) -> None:
        self._generator.bring({} if cpus is None else {GENERATOR_CPUS: f"{cpus:g}"}, clock)
