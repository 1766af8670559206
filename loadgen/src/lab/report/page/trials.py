"""Every trial for itself, as the page shows it: its facts, its verdict, its figures over time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from lab.model import (
    EXTRAPOLATED,
    CpuSplit,
    Judgement,
    Measurement,
    Row,
    Verdict,
    Way,
    goodput,
    strength_text,
    use_text,
)
from lab.report import table as console
from lab.report.blocks import Bullets, Facts, Folded, Paragraph, Strong, Table
from lab.report.page.figure import Figure, specs
from lab.report.page.markup import folded, inline, markup
from lab.report.page.observed import Observed, moments
from lab.report.page.script import packed
from lab.report.page.units import number
from lab.report.remarks import texts
from lab.report.resources import missing_text, sentence
from lab.report.table import NOTHING, data, microseconds, with_unit
from lab.store.records import time_text

STANDINGS = ("resource", "in use", "of the excess", "measured", "failed", "which")
EVIDENCE = ("resource", "what", "value", "query or file")
NOT_STORED = "Its series were not stored, so nothing is drawn over time."
# The page of 100 trials would be 1 MB larger if these tables were not packed.
NO_SCRIPT = "<noscript><p>These figures need this page's script.</p></noscript>"
IN_FILE = "<noscript><p>It needs this page's script. trials.jsonl has it too.</p></noscript>"


@dataclass(frozen=True, slots=True)
class Shown:
    """A trial with all that the page shows; `observed` is None if no series were stored."""

    row: Row
    measurement: Measurement
    judgement: Judgement
    observed: Observed | None
    verdict: Verdict


def trials(shown: Sequence[Shown], drawn: Sequence[Sequence[Figure]]) -> str:
    """Every trial behind a summary; `drawn` are each trial's figures over time."""
    parts = [
        '<p class="soft">What Prometheus saw in exactly the measured window of each trial.</p>'
    ]
    if not any(drawn):
        parts = ["<p>No series were stored of this run, so nothing is drawn over time.</p>"]
    for one, its in zip(shown, drawn, strict=True):
        parts.append(_trial(one, its, alone=not any(drawn)))
    return "".join(parts)


def _trial(of: Shown, drawn: Sequence[Figure], *, alone: bool) -> str:
    row = of.row
    verdict = "" if row.valid else ' <span class="bad">invalid</span>'
    number, _, _ = row.trial.partition("-")
    offered = f" at {row.offered_rps:,}/s" if row.offered_rps is not None else ""
    title = (
        f"<h3>{inline(number)} · {inline(console.lane(row))} · {inline(row.mode)}, "
        f"{row.concurrency:,} connections{offered}</h3>{verdict}"
    )
    count = len(of.judgement.notes)
    notes = f", {count} note{'s' if count > 1 else ''}" if count else ""
    summary = f'{title}<span class="soft">{inline(_result(of) + notes)}</span>'
    reasons = markup([Bullets(texts(of.judgement.reasons))])
    parts = [
        f'<div class="loud">{reasons}</div>' if reasons else "",
        markup([Bullets(texts(of.judgement.notes)), Facts(tuple(_facts(of)))]),
        _standings(of.verdict, row),
    ]
    if drawn:
        parts += [_over_time(drawn), NO_SCRIPT]
    if not drawn and not alone:
        parts.append(f"<p>{NOT_STORED}</p>")
    body = "".join(parts)
    return (
        f'<details id="trial-{escape(row.trial)}"><summary>{summary}</summary>'
        f"<div>{body}</div></details>\n"
    )


def _over_time(drawn: Sequence[Figure]) -> str:
    """Room for the figures, which are too many: the page's script draws those that are shown."""
    room = "".join(f'<figure aria-label="{escape(one.title)}"></figure>\n' for one in drawn)
    return f'<div class="specs"><div class="figures small">{room}</div>\n{specs(drawn)}</div>\n'


def _result(of: Shown) -> str:
    row = of.row
    if of.measurement.record.plan.hold:
        # Each connection sent one request: that is no throughput.
        live = row.live_heap_bytes
        return "no figures" if live is None else f"{data(live)} of live heap"
    rps = goodput(row)
    if rps is None:
        return "no figures"
    text = f"{rps:,.0f} requests/s"
    if row.p95_ms is not None:
        return f"{text}, p95 {with_unit(row.p95_ms)}, raw {with_unit(row.raw_p95_ms)}"
    return f"{text}, raw p95 {with_unit(row.raw_p95_ms)}"


def _standings(of: Verdict, row: Row) -> str:
    """Every resource that was seen, by its share of the excess, with the queries."""
    sure = f" ({strength_text(of.strength)})" if of.strength else ""
    parts = [markup([Paragraph((Strong("Verdict"), f": {sentence(of)}{sure}"))])]
    rows = [
        (
            one.resource,
            use_text(one) or NOTHING,
            _share(one.share),
            _share(one.measured),
            _share(one.failed),
            one.detail or NOTHING,
        )
        for one in of.ranked
    ]
    if rows:
        ranked = Table(STANDINGS, rows, f"Resources of trial {row.trial}", names=1, wide=(5,))
        parts.append(markup([Folded(f"{len(rows)} resources, ranked", [ranked])]))
    seen = [
        (one.resource, each.what, f"{number(each.value)} {each.unit}", f"`{each.source}`")
        for one in of.ranked
        for each in one.evidence
    ]
    if seen:
        evidence = Table(EVIDENCE, seen, f"Evidence of trial {row.trial}", names=2, wide=(3,))
        summary = f"Their evidence, {len(seen)} numbers"
        parts.append(folded(summary, packed(markup([evidence])) + IN_FILE))
    parts.append(markup([Bullets([missing_text(one) for one in of.missing])]))
    return "".join(parts)


def _share(value: float) -> str:
    return f"{value:.0%}" if value else NOTHING


def _facts(of: Shown) -> Iterator[tuple[str, str | None]]:
    row, record = of.row, of.measurement.record
    yield "route", f"{row.route}, asked by {row.engine}"
    bound = None if row.predicted_rps is None else f"{row.predicted_rps:,.0f} requests/s"
    yield "predicted bound", bound
    if record.bounds:
        told = "; ".join(
            f"{'≈' if one.estimate else '≤'} {one.rps:,.0f} {one.resource} "
            f"({f'{EXTRAPOLATED}: ' if one.estimate else ''}{one.formula})"
            for one in record.bounds
        )
        yield "all bounds, requests/s", told
    if row.started_at is not None and row.ended_at is not None:
        window = f" ({row.window_s:.1f} s)" if row.window_s is not None else ""
        yield "measured window", f"{time_text(row.started_at)} to {time_text(row.ended_at)}{window}"
    yield "corrected latency", _latency(row.p50_ms, row.p95_ms, row.p99_ms, row.max_ms)
    raw = _latency(row.raw_p50_ms, row.raw_p95_ms, row.raw_p99_ms, row.raw_max_ms)
    yield "raw latency", raw
    marked = [moment.text for moment in moments(record)]
    yield "marked in its figures", "; ".join(marked) if of.observed else None
    if record.before.spread is not None:
        yield "downstream delay, drawn for each call", record.before.delay_text
    for way in record.before.ways:
        mtu = "" if way.mtu is None else f", packets of up to {way.mtu:,} bytes"
        yield f"network, {way.between}", f"{_round_trip(way)}{mtu}"
    yield "toxics in force", ", ".join(record.before.toxics.in_force) or "none"
    yield "fresh JVM", f"number {row.launch} of this server" if row.launch else "no"
    live, resident = record.live_heap_bytes, record.resident_bytes
    when = "while the connections were held" if record.plan.hold else "after the load"
    yield f"live heap {when}", None if live is None else data(live)
    yield f"resident memory {when}", None if resident is None else data(resident)
    yield "CPU per answer", _split(row)
    usage = record.usage
    if usage.host_busy is not None:
        balance, used = of.verdict.balance, ""
        if balance.cpu is not None and balance.others is not None:
            lab = f"{balance.cpu - balance.others:.0%} of that by the parts of the lab"
            used = f", {lab} and {balance.others:.0%} by others"
        yield "host CPU in the window", f"{usage.host_busy:.0%} busy{used}"


def _split(of: Row) -> str | None:
    names = ("server", "proxy", "downstream", "generator", "observation")
    told = _told(names, [getattr(of, name) for name in CpuSplit.columns()], microseconds)
    return told and f"{told} µs"


def _round_trip(way: Way) -> str:
    if way.ms is None:
        return "not measured: taken as none"
    return f"a round trip {way.ms:.3g} ms" if way.ms else "a round trip too short to tell"


def _latency(*values: float | None) -> str | None:
    return _told(("p50", "p95", "p99", "max"), values, with_unit)


def _told(
    names: Sequence[str], values: Sequence[float | None], text: Callable[[float | None], str]
) -> str | None:
    """Values after their names; None where none is known."""
    if all(value is None for value in values):
        return None
    return ", ".join(f"{name} {text(value)}" for name, value in zip(names, values, strict=True))
