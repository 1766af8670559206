"""Run density: a fresh JVM, its memory, many connections, its memory again; row by row.

Both times the heap is what a full collection leaves. The resident memory also holds the space
of garbage, as a JVM does not return that space after a collection. So connections are opened in
steps, with a collection after each. The first step is opened and closed before anything is
measured. Each step's garbage then fills the space of the last one's, and the growth is the memory
of the connections.

Requests in flight cannot be taken back: a server goes on with them, and keeps its connections to
the downstream. So their first step stays open, and the growth is that of the others. A downstream
call takes two files of Toxiproxy's too: what earlier servers left there is cut before, and all must
be there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

from rich.console import Console

from lab.campaign.derive import write_derived
from lab.campaign.resume import check_same_lab, check_same_words, check_unfinished
from lab.campaign.run_record import begin, ending, go_on, warn
from lab.campaign.tools import Lab, Place
from lab.errors import LabError, LabUnreachable
from lab.judge.fairness import compare, reasons
from lab.judge.same_lab import between_snapshots
from lab.model import (
    NOT_BACK,
    REASON_SEPARATOR,
    Condition,
    Identity,
    Json,
    Judgement,
    Snapshot,
)
from lab.model.density import Kind, Plan, Row, made_of_text
from lab.model.routes import Route, parse
from lab.report import density as report
from lab.report import fairness, index, markdown
from lab.store import density as store
from lab.store import manifest
from lab.store.manifest import Manifest
from lab.store.records import drop_torn_row, read_object
from lab.store.run_dir import check_space, point_latest
from lab.system import traffic
from lab.system.conditions import Conditions
from lab.system.connections import Connections
from lab.system.host import System
from lab.system.host_changes import HostChanges
from lab.system.jvm import fresh_jvm, live_heap
from lab.system.proxy_reset import clear_proxy
from lab.system.stack import Stack
from lab.system.undo_log import NOT_PUT_BACK, UndoLog

POLL_S = 0.2
# Connections between two collections.
STEP = 500
OPEN_S = 60.0
# Requests in flight wait a minute at most, so that fewer collections must do.
IN_FLIGHT_STEPS = 10
# Downstream calls are not answered while they are held, nor given up.
HOLD_MS = 600_000
HOLD = {"TYPE": "latency", "NAME": "in-flight", "LATENCY": str(HOLD_MS)}
# From the last byte sent until the server has read the bytes sent.
SETTLE_S = 1.0
# On a busy machine Toxiproxy sets up some 300 connections a second.
ARRIVE_S = 60.0
# What else a server may open meanwhile: scrapes, health checks.
OTHER_FILES = 16
TORN = f"the last row of {store.NAME} was torn: it is dropped, and its launch is made again"


# The class itself, or a test's own.
Connect = Callable[[str, int, Kind, str, Callable[[], None]], Connections]


@dataclass(frozen=True, slots=True)
class _Memory:
    """What a server holds at one moment."""

    heap_bytes: int
    resident_bytes: int
    classes: Mapping[str, int]


@dataclass(slots=True)
class _Found:
    """What one launch found, possibly incomplete."""

    opened: int = 0
    first: int = 0
    why_fewer: str | None = None
    before: _Memory | None = None
    after: _Memory | None = None
    reasons: tuple[str, ...] = ()


def density(plan: Plan, lab: Lab, connect: Connect = Connections) -> int:
    """Run the plan. Returns the exit code: 0, or 1 where a launch gave no figures.

    Raises LabError; Interrupted after what was measured is on disk and printed.
    """
    place, console = lab.place, lab.console
    check_space(place.results)
    snapshots = {server: lab.stack.snapshot(server) for server in plan.servers}
    if "in-flight" in plan.kinds and parse(plan.route).route.calls_downstream:
        for server, found in snapshots.items():
            if found.direct:
                raise LabError(
                    f"density: {server} calls the downstream without Toxiproxy "
                    "(SERVER_DOWNSTREAM_URL), whose toxic holds its calls in flight; "
                    "ROUTE=/block needs neither"
                )
    snapshots = {server: _as_launched(server, was, lab) for server, was in snapshots.items()}
    common = compare(snapshots)
    for reason in reasons(common):
        console.print(f"warning: no row will be valid: {reason}")
    run_dir, record = begin(place, lab.system, plan.name, plan, snapshots, common, _limits(place))
    console.print(
        f"{plan.rows} launches with {plan.connections} connections each, every one on a fresh "
        f"JVM, to results/{run_dir.name}"
    )
    if plan.why_fewer is not None:
        console.print(
            f"{plan.connections} of the {plan.asked} connections asked for: {plan.why_fewer}"
        )
    return _go(run_dir, record, lab, connect, [])


def resume(run_dir: Path, lab: Lab, connect: Connect = Connections) -> int:
    """Go on with a run that was interrupted, with the launches it had planned; finished ones
    are neither lost nor run again. Returns and raises as `density`, and LabError when there is
    nothing left to do, or the lab is not the one the run began on."""
    record = manifest.read_of(run_dir, Plan)
    plan = record.experiment
    check_unfinished(record)
    place = lab.place
    check_same_words(record, place.settings)
    check_space(place.results)
    snapshots = {
        server: _as_launched(server, lab.stack.snapshot(server), lab) for server in plan.servers
    }
    check_same_lab(record, read_object(place.host_file), _limits(place), snapshots)
    if drop_torn_row(run_dir / store.NAME):
        lab.console.print(TORN)
    rows = list(store.read(run_dir / store.NAME))
    lab.console.print(f"results/{run_dir.name}: {len(rows)} launches are there, going on")
    record = dataclasses.replace(record, status="running", ended_at=None)
    manifest.write(run_dir, record)
    return _go(run_dir, record, lab, connect, rows)


def _as_launched(server: str, was: Snapshot, lab: Lab) -> Snapshot:
    """What every launch has: that of a fresh JVM. A knob that was turned before is gone with it,
    and a warning says so. As it `was` where no JVM comes: the launches will say so."""
    try:
        fresh_jvm(server, lab.stack, lab.system)
        found = lab.stack.snapshot(server)
    except LabUnreachable:
        return was
    for one in between_snapshots(was, found):
        if one.kind == "settings":
            text = (
                f"{server}: {one.name} was {one.was}; every launch is a fresh JVM, with {one.now}"
            )
            lab.console.print(f"warning: {text}")
    return found


def _limits(place: Place) -> dict[str, Json]:
    """This process' own limits, as the manifest has them."""
    return {"open_files": place.file_limit, "source_ports": place.ports}


def _go(run_dir: Path, record: Manifest[Plan], lab: Lab, connect: Connect, rows: list[Row]) -> int:
    """Measure every launch that is not in `rows` yet, and print the table of all."""
    plan, console, now = record.experiment, lab.console, lab.system.now
    host_changes = HostChanges(lab.place.host_changes)
    undo_log = UndoLog(lab.place.undo_log)
    conditions = Conditions(lab.stack, host_changes, lab.system, undo_log=undo_log)
    launcher = _Launcher(
        run_dir.name, plan, lab.stack, lab.system, connect, conditions, undo_log, console
    )
    done = {(row.launch, row.kind, row.server) for row in rows}
    began, before = now(), len(rows)

    def end(status: manifest.Status) -> None:
        manifest.write(run_dir, dataclasses.replace(record, status=status, ended_at=now()))
        report.render(console, rows)
        if rows:
            fairness.render(console, record.fairness)
            write_report(run_dir, keep=False)
            files = f"{store.NAME}, {markdown.NAME}"
            console.print(f"results/{run_dir.name}/{{{files}}}")
        if status != "complete":
            console.print(f"{status}: {go_on(record)} goes on")

    with ending(run_dir, end, console):
        # Models innermost: those compared are neighbours in time.
        for number, kind, server in product(range(1, plan.launches + 1), plan.kinds, plan.servers):
            if (number, kind, server) in done:
                continue
            row = launcher.launch(server, kind, number, reasons(record.fairness))
            store.append(run_dir / store.NAME, row)
            if not rows:
                point_latest(run_dir)
            rows.append(row)
            left_s = (now() - began).total_seconds() / (len(rows) - before)
            left_s *= plan.rows - len(rows)
            report.progress(console, row, len(rows), plan.rows, left_s)
    return 1 if any(row.heap_per_connection_bytes is None for row in rows) else 0


def write_report(run_dir: Path, *, keep: bool) -> tuple[bool, str | None]:
    """REPORT.md from what is on disk, so that it is the same whenever it is made. Returns as
    `write_derived`; raises LabError where that cannot be read."""
    record = manifest.read_of(run_dir, Plan)
    rows = store.read(run_dir / store.NAME)
    plan = record.experiment
    asked = plan.question or f"What does a connection of {', '.join(plan.servers)} take?"
    answer = index.answer_text(asked, report.answer(rows))
    write_derived(run_dir / index.ANSWER, answer, keep=False)
    text = report.text(record, rows)
    return write_derived(run_dir / markdown.NAME, text, keep=keep)


@dataclass(frozen=True, slots=True)
class _Launcher:
    """Measures one fresh JVM after the other."""

    run: str
    plan: Plan
    stack: Stack
    system: System
    connect: Connect
    conditions: Conditions
    undo_log: UndoLog
    console: Console

    def launch(self, server: str, kind: Kind, number: int, unequal: tuple[str, ...]) -> Row:
        """One row; a row without figures where the server does not come back."""
        started_at = self.system.now()
        try:
            identity = fresh_jvm(server, self.stack, self.system)
        except LabUnreachable as failure:
            found, wrong = _Found(), [f"{NOT_BACK}: {failure}"]
        else:
            found = self._measure(server, kind)
            wrong = [*unequal, *found.reasons]
            if identity.model != server:
                wrong.append(f"wrong server: {identity.model} answered as {server}")
            if self._identity(server) != identity:
                wrong.append("the JVM restarted during the launch")
        before, after = found.before, found.after
        heap_each = resident_each = classes_each = None
        if before is not None and after is not None:
            more = found.opened - found.first
            heap_each = (after.heap_bytes - before.heap_bytes) / more
            resident_each = (after.resident_bytes - before.resident_bytes) / more
            classes_each = made_of_text(before.classes, after.classes, more)
        why = [why for why in (self.plan.why_fewer, found.why_fewer) if why is not None]
        return Row(
            run=self.run,
            server=server,
            kind=kind,
            launch=number,
            asked=self.plan.asked,
            opened=found.opened,
            why_fewer="; ".join(why) or None,
            heap_before_bytes=before.heap_bytes if before else None,
            heap_after_bytes=after.heap_bytes if after else None,
            resident_before_bytes=before.resident_bytes if before else None,
            resident_after_bytes=after.resident_bytes if after else None,
            heap_per_connection_bytes=heap_each,
            resident_per_connection_bytes=resident_each,
            made_of=classes_each,
            valid=not wrong,
            invalid_reasons=REASON_SEPARATOR.join(Judgement(tuple(wrong), ()).reasons),
            started_at=started_at,
            ended_at=self.system.now(),
        )

    def _identity(self, server: str) -> Identity | None:
        try:
            return self.stack.management.identity(server)
        except LabUnreachable:
            return None

    def _measure(self, server: str, kind: Kind) -> _Found:
        found = _Found()
        try:
            if kind == "in-flight":
                self._in_flight(server, found)
            else:
                self._quiet(server, kind, found)
        except LabUnreachable as failure:
            found.reasons = (*found.reasons, str(failure))
        return found

    def _quiet(self, server: str, kind: Kind, found: _Found) -> None:
        more = self._more_files(server)
        with self._connections(server, kind) as first:
            self._open(server, first, min(STEP, self.plan.connections), STEP)
        self._wait_for(lambda: more() <= OTHER_FILES)
        found.before = self._memory(server)
        more = self._more_files(server)
        with self._connections(server, kind) as held:
            self._open(server, held, self.plan.connections, STEP)
            self._hold(server, held, more, found)

    def _in_flight(self, server: str, found: _Found) -> None:
        """Requests that wait, with their first step there before the first memory is read."""
        route = parse(self.plan.route).route
        step = max(STEP, self.plan.connections // IN_FLIGHT_STEPS)
        if route.calls_downstream:
            said = clear_proxy(self.stack, self.system, self.undo_log, harmless=0)
            if said is not None:
                warn(self.console, said)
        more = self._more_files(server, proxied=route.calls_downstream)
        try:
            self.conditions.bring(server, self._waiting(server, route))
            with self._connections(server, "in-flight") as held:
                self._open(server, held, min(step, self.plan.connections // 2), step)
                found.first = held.open
                there = self._arrived(more, held.open * route.descriptors)
                found.before = self._memory(server)
                self._open(server, held, self.plan.connections - held.open, step)
                self._hold(server, held, more, found, route)
                if not there and not found.reasons:
                    early = "memory was read before the first step was there"
                    found.reasons = (early,)
        finally:
            # Told at once: an interrupt leaves no row.
            restored = self.conditions.restore()
            for line in restored:
                warn(self.console, line)
            found.reasons = (*found.reasons, *(line for line in restored if NOT_PUT_BACK in line))

    def _waiting(self, server: str, route: Route) -> Condition:
        """The lab in which so many requests are in flight at once: a pool has a thread for each."""
        knobs, size = {}, self.stack.management.settings(server).get("pool_size")
        if isinstance(size, int):
            knobs["pool_size"] = max(size, self.plan.connections)
        if not route.calls_downstream:
            return Condition(knobs=knobs)
        return Condition(knobs={**knobs, "downstream_timeout_ms": HOLD_MS}, toxics=(HOLD,))

    def _connections(self, server: str, kind: Kind) -> Connections:
        check = partial(self.system.sleep, 0)
        return self.connect(server, traffic.PORT, kind, self.plan.route, check)

    def _open(self, server: str, held: Connections, count: int, step: int) -> None:
        """Open so many more, with a collection after each step."""
        tried = 0
        while tried < count and held.problem is None:
            now = min(step, count - tried)
            held.add(now, self.system.monotonic() + OPEN_S, self.system.monotonic)
            tried += now
            self.stack.management.collect_garbage(server)

    def _hold(
        self,
        server: str,
        held: Connections,
        more: Callable[[], float],
        found: _Found,
        route: Route | None = None,
    ) -> None:
        """Measure with the connections open, and see that they are, at both ends: by the files that
        each takes, one where there is no request for a `route`."""
        each = route.descriptors if route else 1
        found.opened, found.why_fewer = held.open, held.problem
        if found.opened <= found.first:
            found.reasons = ("no connection could be opened",)
            return
        there = self._arrived(more, found.opened * each)
        self.system.sleep(SETTLE_S)
        found.after = self._memory(server)
        held.notice_closed()
        wrong = []
        if not there:
            who = "the server and Toxiproxy" if route and route.calls_downstream else "the server"
            wrong.append(f"{who} never had {found.opened * each} more files open")
        if held.open < found.opened:
            lost = found.opened - held.open
            wrong.append(f"{lost} of {found.opened} connections were lost: {held.lost}")
        found.reasons = tuple(wrong)

    def _more_files(self, server: str, *, proxied: bool = False) -> Callable[[], float]:
        """Tells how many more files the server has open than now. Of `proxied` requests Toxiproxy
        holds as many as the server does: the fewer of the two."""
        looks: list[Callable[[], float]] = [lambda: self.stack.exporter.process(server).open_files]
        if proxied:
            looks.append(lambda: self.stack.toxiproxy.files()[0])
        before = [look() for look in looks]
        return lambda: min(look() - was for look, was in zip(looks, before, strict=True))

    def _arrived(self, more: Callable[[], float], files: int) -> bool:
        return self._wait_for(lambda: more() >= files - OTHER_FILES)

    def _wait_for(self, right: Callable[[], bool]) -> bool:
        """Whether it becomes right in time."""
        until = self.system.monotonic() + ARRIVE_S
        while not right():
            if self.system.monotonic() >= until:
                return False
            self.system.sleep(POLL_S)
        return True

    def _memory(self, server: str) -> _Memory:
        """The classes first, before and after alike: their text is garbage, whose pages stay."""
        classes = self.stack.management.live_classes(server)
        heap_bytes = live_heap(server, self.stack)
        return _Memory(heap_bytes, self.stack.exporter.process(server).resident_bytes, classes)
