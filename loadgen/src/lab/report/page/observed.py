"""A trial's window over time: twelve figures of what Prometheus saw of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from lab.judge.heap import heap_after_collections
from lab.judge.metrics import RUN
from lab.model import Observation, SeriesError, TrialRecord, bucket_quantile
from lab.report.page import spec, units
from lab.report.page.figure import Figure
from lab.report.page.palette import HUES, NEUTRAL
from lab.report.page.spec import FAINT, Series, Spec

WIDTH, HEIGHT = 320, 185
# From so many seconds on, time is in minutes.
MINUTES_FROM_S = 360.0
# Of more lines than these only the highest have a hue and a name, and the trial's own server.
MOST_NAMED = 6
# More lines than these that never leave 0 (errors of every kind) are one entry of the legend.
MOST_IDLE = 2
# More samples than these of a line a page does not show.
MOST_SAMPLES = 240
# A p95 is of so many seconds, as far as the window has them: five scrapes.
P95_S = 4.5
# A line is not drawn across so long a time without samples: longer than two reads of cAdvisor, and
# than a p95 is of.
GAP_S = 7.0


@dataclass(frozen=True, slots=True)
class Line:
    """(seconds from the window's start, value) points under a name. `owner` is the server or the
    service that it is of. `is_set`: it is set, not measured, such as an offered rate."""

    label: str
    points: tuple[tuple[float, float], ...]
    owner: str = ""
    is_set: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """The lines of one figure. `unit` is one of `units.of_panel`."""

    title: str
    unit: str
    description: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Observed:
    """What is drawn of a window of `length_s`. Samples are at least `step_s` apart."""

    length_s: float
    step_s: float
    panels: tuple[Panel, ...]


def observed(seen: Observation, server: str, route: str) -> Observed:
    """The twelve panels of a trial of this server on this route. Raises SeriesError."""
    opens, closes = seen.window
    step_s = (closes - opens) / MOST_SAMPLES
    lines = _Lines(seen, step_s, server, route.partition("?")[0])
    panels = (
        Panel(title, unit, description, tuple(chain.from_iterable(found(lines))))
        for title, unit, description, found in PANELS
    )
    return Observed(closes - opens, step_s, tuple(panels))


@dataclass(frozen=True, slots=True)
class _Lines:
    """Reads lines of an observation. In a label, `{name}` is the value of a series' label."""

    seen: Observation
    step_s: float
    server: str
    route: str

    def values(
        self, label: str, name: str, *, is_set: bool = False, **labels: str
    ) -> Iterator[Line]:
        """A line for each series of a gauge; a negative one means: no such pool (Tomcat)."""
        for series in self.seen.series(name, **labels):
            if min(series.values) >= 0:
                yield from self._line(label, series.labels, series.points, is_set=is_set)

    def after_collection(self, label: str) -> Iterator[Line]:
        """What collections leave of the heap."""
        points = heap_after_collections(self.seen, server=self.server)
        yield from self._line(label, {"server": self.server}, points)

    def rates(self, label: str, name: str, *by: str, **labels: str) -> Iterator[Line]:
        """The rise per second of counters between two samples: of all that these labels tell apart
        a line."""
        for group in self._apart(name, by, labels):
            points = self._slopes(self.seen.steps(name, **labels, **group))
            yield from self._line(label, {**labels, **group}, points)

    def p95(self, label: str, name: str, *by: str, **labels: str) -> Iterator[Line]:
        """The p95 of a histogram's observations, about every P95_S."""
        name = f"{name}_bucket"
        opens, closes = self.seen.window
        least_s = max(min(P95_S, (closes - opens) / 2), self.step_s)
        for group in self._apart(name, by, labels):
            counts: dict[tuple[float, float], dict[float, float]] = defaultdict(dict)
            bounds = {one.labels.get("le", "") for one in self.seen.series(name, **labels, **group)}
            for le in bounds:
                for start, end, rise in self.seen.steps(name, le=le, **labels, **group):
                    counts[start, end][_bound(le)] = rise
            points = _quantiles(sorted(counts.items()), least_s)
            yield from self._line(label, {**labels, **group}, points)

    def _apart(
        self, name: str, by: Sequence[str], labels: Mapping[str, str]
    ) -> list[dict[str, str]]:
        """What tells the series of a metric apart: the values of these labels."""
        found = (
            tuple((label, one.labels[label]) for label in by if label in one.labels)
            for one in self.seen.series(name, **labels)
        )
        return [dict(group) for group in sorted(set(found))]

    def _slopes(self, steps: Iterable[tuple[float, float, float]]) -> Iterator[tuple[float, float]]:
        began, risen = None, 0.0
        for start, end, rise in steps:
            began, risen = start if began is None else began, risen + rise
            if end - began >= self.step_s:
                yield end, risen / (end - began)
                began, risen = None, 0.0

    def _line(
        self,
        label: str,
        labels: Mapping[str, str],
        points: Iterable[tuple[float, float]],
        *,
        is_set: bool = False,
    ) -> Iterator[Line]:
        opens, closes = self.seen.window
        kept: list[tuple[float, float]] = []
        for at, value in points:
            inside = opens <= at <= closes
            if inside and (not kept or at - opens - kept[-1][0] >= self.step_s):
                kept.append((at - opens, value))
        if kept:
            owner = labels.get("server") or labels.get("service", "")
            text = label.format_map(defaultdict(str, labels)).strip()
            yield Line(text, tuple(kept), owner, is_set)


def _bound(le: str) -> float:
    try:
        return float(le)
    except ValueError:
        raise SeriesError(f"a bucket without a bound: {le!r}") from None


def _quantiles(
    steps: Iterable[tuple[tuple[float, float], Mapping[float, float]]], least_s: float
) -> Iterator[tuple[float, float]]:
    began, counts = None, defaultdict[float, float](float)
    for (start, end), more in steps:
        began = start if began is None else began
        for bound, rise in more.items():
            counts[bound] += rise
        if end - began >= least_s:
            value = bucket_quantile(sorted(counts.items()), 0.95)
            if value is not None:
                yield end, value
            began, counts = None, defaultdict(float)


def _throughput(lines: _Lines) -> Iterator[Iterator[Line]]:
    client, ok = "lab_client_requests_total", {"source": "load", "outcome": "ok"}
    yield lines.rates("ended by the server", "lab_http_requests_total", route=lines.route)
    yield lines.rates("answered to the load", client, server=lines.server, **ok)
    yield lines.values("offered", "lab_trial_offered_rps", server=lines.server, is_set=True)


def _errors(lines: _Lines) -> Iterator[Iterator[Line]]:
    for what, name in (
        ("answered", "lab_http_requests_total"),
        ("client", "lab_client_requests_total"),
        ("downstream call", "lab_downstream_calls_total"),
    ):
        outcomes = {one.labels.get("outcome", "") for one in lines.seen.series(name)}
        for outcome in sorted(outcomes - {"ok", ""}):
            yield lines.rates(f"{what}: {{outcome}}", name, outcome=outcome, server=lines.server)
    yield lines.rates("client: not connected", "lab_client_connect_failures_total")
    yield lines.rates("accept queue overflow", "lab_kernel_listen_overflows_total")


def _latency(lines: _Lines) -> Iterator[Iterator[Line]]:
    name = "lab_client_request_seconds"
    yield lines.p95(
        "client, since {since} ({source})", name, "source", "since", server=lines.server
    )
    yield lines.p95("server {phase}", "lab_http_request_seconds", "phase", server=lines.server)


def _in_flight(lines: _Lines) -> Iterator[Iterator[Line]]:
    yield lines.values("in the server", "lab_http_requests_in_flight", route=lines.route)
    yield lines.values("of the load", "lab_client_requests_in_flight", source="load")
    yield lines.values("in the downstream", "lab_downstream_in_flight")
    yield lines.values("connections", "lab_trial_concurrency", server=lines.server, is_set=True)


def _waiting(lines: _Lines) -> Iterator[Iterator[Line]]:
    yield lines.values("for a connection of the load", "lab_client_requests_waiting")
    yield lines.values("in the accept queue", "lab_kernel_accept_queue_length")
    yield lines.values("for a worker", "lab_worker_pool_queue_depth")
    yield lines.values("for a carrier", "lab_virtual_thread_scheduler_queued")
    yield lines.values("for loop {loop}", "lab_event_loop_queue_depth")
    yield lines.values("for a downstream connection", "lab_downstream_connections_pending")
    yield lines.values("in the accept queue of {listener}", "lab_path_accept_queue_length")


def _threads(lines: _Lines) -> Iterator[Iterator[Line]]:
    carriers = "lab_virtual_thread_scheduler"
    yield lines.values("busy workers {connector}", "lab_worker_pool_active")
    yield lines.values("workers {connector}", "lab_worker_pool_size", is_set=True)
    yield lines.values("busy carriers", f"{carriers}_mounted")
    yield lines.values("carriers", f"{carriers}_parallelism", is_set=True)
    yield lines.values("platform threads", "jvm_threads_current")
    yield lines.rates("wait for locks: {kind} {site}", "lab_wait_seconds_total", "kind", "site")


def _cpu(lines: _Lines) -> Iterator[Iterator[Line]]:
    yield lines.rates("{service}", "container_cpu_usage_seconds_total", "service", "name")
    yield lines.rates("host {machine}", "host_cpu_usage_seconds_total", "machine")
    yield lines.values("machine", "machine:machine_cpu_cores:max", is_set=True)


def _shares(lines: _Lines) -> Iterator[Iterator[Line]]:
    name = "jvm_gc_collection_seconds_sum"
    yield lines.rates("loop {loop}", "lab_event_loop_busy_seconds_total", "loop")
    yield lines.rates("{front}", "lab_front_busy_seconds_total", "front")
    yield lines.rates("{front} on a CPU", RUN, "front", threads="front")
    for collector in sorted({one.labels.get("gc", "") for one in lines.seen.series(name)}):
        # Cycles run beside the program, and are no pauses.
        if "Cycles" not in collector:
            yield lines.rates("{gc}", name, gc=collector)
    yield lines.rates("JIT compiler", RUN, threads="compiler")
    name = "container_cpu_cfs_throttled_seconds_total"
    yield lines.rates("stopped by its CPU quota", name, service=lines.server)


def _memory(lines: _Lines) -> Iterator[Iterator[Line]]:
    yield lines.values("heap used", "jvm_memory_used_bytes", area="heap")
    yield lines.after_collection("heap after GC")
    yield lines.values("heap limit", "jvm_memory_max_bytes", area="heap", is_set=True)
    yield lines.values("resident", "process_resident_memory_bytes", job="jvm")


def _sockets(lines: _Lines) -> Iterator[Iterator[Line]]:
    yield lines.values("connections of clients", "lab_http_connections_open")
    yield lines.values("downstream connections", "lab_downstream_connections_leased")
    yield lines.values("TCP sockets in use", "lab_kernel_tcp_sockets_in_use")
    yield lines.values("TIME_WAIT", "lab_kernel_tcp_time_wait")
    yield lines.values("open files", "process_open_fds", job="jvm")


def _downstream(lines: _Lines) -> Iterator[Iterator[Line]]:
    yield lines.p95("{phase}, as the server sees it", "lab_downstream_call_seconds", "phase")
    yield lines.p95("lag of the downstream", "lab_downstream_lag_seconds")
    yield lines.values("delay set", "lab_downstream_delay_seconds", is_set=True)
    toxics = "lab_toxics_added_latency_seconds"
    yield lines.values("added by toxics of {proxy}", toxics, is_set=True)


def _network(lines: _Lines) -> Iterator[Iterator[Line]]:
    for way, name in (("in", "receive"), ("out", "transmit")):
        name = f"container_network_{name}_bytes_total"
        # On one machine Toxiproxy and the downstream have the interface of downstream-network.
        several = any("machine" in one.labels for one in lines.seen.series(name))
        path = ("toxiproxy", "downstream") if several else ("downstream-network",)
        for service in (lines.server, *path, "driver"):
            yield lines.rates(f"{{service}} {way}", name, "name", service=service)


PANELS: Sequence[tuple[str, str, str, Callable[[_Lines], Iterable[Iterable[Line]]]]] = (
    (
        "Throughput",
        "reqps",
        "Requests per second: that the server ended, whatever came of them (a probe's are among "
        "them), and that the load saw answered without an error, where its engine tells that while "
        "it runs. A closed load offers nothing.",
        _throughput,
    ),
    (
        "Errors by kind",
        "reqps",
        "Per second: requests that the server ended otherwise than ok, that failed at the client "
        "(the load's, or a probe's), calls of the downstream that failed, and connections that the "
        "kernel refused at the server's full accept queue.",
        _errors,
    ),
    (
        "p95 latency: client beside server",
        "s",
        "Client: the load's own requests where its engine tells them while it runs, or else a "
        "probe of about 20 requests/s. Server: from hand-over to the answer (total), split into "
        "waiting for a thread (queue) and work (service). Client far above total: the wait is "
        "before the server's own code. The first bucket ends at 1 ms.",
        _latency,
    ),
    (
        "Requests in flight",
        "short",
        "Requests begun and not yet answered. The connections of the trial bound them.",
        _in_flight,
    ),
    (
        "What waits, and for what",
        "short",
        "Requests, connections and threads in each queue of the path. The one that grows is in "
        "front of what is short.",
        _waiting,
    ),
    (
        "Threads",
        "short",
        "Workers with a request and carriers with a virtual thread beside how many there may be, "
        "threads of the operating system, and threads that wait for locks where that is watched.",
        _threads,
    ),
    (
        "CPU of containers and host",
        "percentunit",
        "100 % is one CPU. The host's is that of anybody, the lab or not.",
        _cpu,
    ),
    (
        "Shares of the time",
        "percentunit",
        "Event loops and fronts at work, the CPU time of each front, collections that stop the "
        "program, the JIT compiler's CPU time, and for how long its CPU quota stopped the server. "
        "At 100 % a loop is the limit, and a front that is on a CPU all the time.",
        _shares,
    ),
    (
        "Heap and memory",
        "bytes",
        "Heap in use, what collections leave of it, its limit, and what the process holds of the "
        "machine's memory.",
        _memory,
    ),
    (
        "Sockets and files",
        "short",
        "What the server and its kernel hold open.",
        _sockets,
    ),
    (
        "Downstream",
        "s",
        "p95 of a call as the server sees it: waiting for a connection (pending) and the call "
        "itself; how much later than its set delay the downstream answers; and that delay, with "
        "what toxics add.",
        _downstream,
    ),
    (
        "Network",
        "Bps",
        "Bytes per second into and out of the containers of the server, of the load (driver), and "
        "of Toxiproxy and the downstream, which share one interface where they are on one machine.",
        _network,
    ),
)


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that was done during a trial, `at_s` seconds after its window opened; figures
    mark it with its `number`."""

    number: int
    at_s: float
    what: str

    @property
    def text(self) -> str:
        return f"{self.number} at {self.at_s:.1f} s: {self.what}"


def moments(record: TrialRecord) -> tuple[Moment, ...]:
    """The edges of a trial's spikes and the steps of its script of toxics, as they really were."""
    extra = record.plan.spike.extra if record.plan.spike else 0
    found = [(one.started_s, f"spike of {extra:,} connections begins") for one in record.peaks]
    found += [(one.ended_s, "spike ends") for one in record.peaks]
    found += [
        (one.started_s, f"{one.change}{f' ({one.problem})' if one.problem else ''}")
        for one in record.script
    ]
    return tuple(
        Moment(number, at_s - record.window_offset_s, what)
        for number, (at_s, what) in enumerate(sorted(found, key=lambda one: one[0]), start=1)
    )


def drawn(
    trial: str,
    server: str,
    window: Observed,
    hues: Mapping[str, int],
    marked: Sequence[Moment] = (),
) -> Iterator[Figure]:
    """The figure of every panel that has anything to show, with the moments marked."""
    for number, panel in enumerate(window.panels, start=1):
        if panel.lines:
            yield _figure(f"{trial}-p{number}", server, panel, window, hues, marked)


def _figure(
    name: str,
    server: str,
    panel: Panel,
    window: Observed,
    hues: Mapping[str, int],
    marked: Sequence[Moment],
) -> Figure:
    lines = panel.lines
    # Among the containers.
    of_server = [line for line in lines if line.label.partition(" ")[0] == server]
    idle = [line for line in lines if not any(value for _, value in line.points)]
    idle = [line for line in idle if line not in of_server] if len(idle) > MOST_IDLE else []
    ranked = sorted((line for line in lines if line not in idle), key=_highest, reverse=True)
    named = [line for line in lines if line in ranked[:MOST_NAMED] or line in of_server]
    others = [line for line in ranked if line not in named]
    entries = [
        Series(line.label, hue, "dash" if line.is_set else "")
        for line, hue in zip(named, _hues(named, hues, server), strict=True)
    ]
    more = [
        (others, f"{len(others)} more, lower"),
        (idle, f"{len(idle)}{' more' if named else ''}, all 0"),
    ]
    unit = units.of_panel(panel.unit, max(map(_highest, lines)))
    minutes = window.length_s >= MINUTES_FROM_S
    second = 60.0 if minutes else 1.0

    def records(name: str, line: Line) -> list[Spec]:
        """A line in the units of the axes, one record for each piece without a gap."""
        return [
            {
                "series": name,
                "id": f"{line.label} {piece[0][0]}",
                "x": [_short_of(at / second) for at, _ in piece],
                "y": [_short_of(value * unit.factor) for _, value in piece],
            }
            for piece in _pieces(line, max(GAP_S, 3.5 * window.step_s))
        ]

    faint = [one for group, name in more for line in group for one in records(name, line)]
    bold = [
        one for line, entry in zip(named, entries, strict=True) for one in records(entry.name, line)
    ]
    series = [*entries, *(Series(name, NEUTRAL) for group, name in more if group)]
    encodings = spec.of_series(series, WIDTH, unit.label)
    highest = max(map(_highest, lines)) * unit.factor
    encoding: Spec = {
        "y": {"field": "y", "type": "quantitative",
              "axis": {**units.axis(unit), "tickCount": 4}, "scale": units.linear(highest)},
        **spec.picked(encodings, "color", "strokeDash", "opacity"),
        "detail": {"field": "id"},
    }  # fmt: skip
    parts: tuple[tuple[str, list[Spec], Spec], ...] = (("more", faint, FAINT), ("lines", bold, {}))
    layers: list[Spec] = [
        {
            "name": name,
            "data": {"values": values},
            "transform": [{"flatten": ["x", "y"]}],
            "mark": {"type": "line", "clip": True, **mark},
            "encoding": encoding,
        }
        for name, values, mark in parts
        if values
    ]
    layers[-1]["params"] = [spec.toggle()]
    length = window.length_s / second
    layers += _marks([one for one in marked if 0 <= one.at_s <= window.length_s], second)
    layers.append(_hover(bold or faint, unit, "min" if minutes else "s"))
    texts = [*(_extent(line, unit) for line in named), *(f"{moment.text}." for moment in marked)]
    view: Spec = {
        "title": panel.title,
        "width": WIDTH,
        "height": HEIGHT + spec.LEGEND_PX * spec.legend_rows([one.name for one in series], WIDTH),
        "encoding": {
            "x": {"field": "x", "type": "quantitative",
                  "scale": {"domain": [0, length], "nice": False},
                  "axis": {"title": "min" if minutes else "s", "tickCount": 6}},
        },
        "layer": layers,
    }  # fmt: skip
    return Figure(name, panel.title, f"{panel.description} {' '.join(texts)}", view)


def _pieces(line: Line, gap_s: float) -> Iterator[list[tuple[float, float]]]:
    piece: list[tuple[float, float]] = []
    for point in line.points:
        if piece and point[0] - piece[-1][0] > gap_s:
            yield piece
            piece = []
        piece.append(point)
    yield piece


def _short_of(value: float) -> float:
    """Four digits are more than a figure shows, and pack well."""
    short = float(f"{value:.4g}")
    return int(short) if short.is_integer() else short


def _marks(marked: Sequence[Moment], second: float) -> list[Spec]:
    """An upright line at each moment, with its number above."""
    if not marked:
        return []
    values = [
        {"x": one.at_s / second, "number": str(one.number), "tip": one.text} for one in marked
    ]
    rule = {"type": "rule", "strokeDash": [2, 3], "color": "var(--soft)", "clip": True}
    text = {"type": "text", "baseline": "bottom", "color": "var(--soft)", "fontSize": 11}
    return [
        {"name": "marks", "data": {"values": values}, "mark": rule,
         "encoding": {"tooltip": {"field": "tip"}}},
        {"name": "numbers", "data": {"values": values}, "mark": {**text, "y": 0},
         "encoding": {"text": {"field": "number"}}},
    ]  # fmt: skip


def _hover(records: list[Spec], unit: units.Unit, second: str) -> Spec:
    """A line at the sample next to the pointer, and the values of all series there."""
    line = f"datum.series+': '+{unit.written('datum.y')}"
    layer = spec.nearest(line, f"format(datum.x,'.4~r')+' {second}'")
    return {**layer, "data": {"values": records}}


def _hues(lines: Sequence[Line], hues: Mapping[str, int], server: str) -> Iterator[int]:
    """A server's first line has its server's hue, the trial's own before one that shares it;
    every other line one that is not taken."""
    owners = [line.owner if line.owner in hues else None for line in lines]
    holders: dict[int, int] = {}
    for owner in (server, *owners):
        if owner in owners and owner is not None:
            holders.setdefault(hues[owner], owners.index(owner))
    held = {index: hue for hue, index in holders.items()}
    free = [hue for hue in range(HUES) if hue not in holders] or list(range(HUES))
    used = 0
    for index in range(len(lines)):
        if index in held:
            yield held[index]
        else:
            yield free[used % len(free)]
            used += 1


def _highest(line: Line) -> float:
    return max(value for _, value in line.points)


def _extent(line: Line, unit: units.Unit) -> str:
    values = [value for _, value in line.points]
    return f"{line.label}: {unit.words(min(values))} to {unit.words(max(values))}."
