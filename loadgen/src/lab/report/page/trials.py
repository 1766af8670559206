"""Every trial of a page: its facts, its verdict, its figures over time."""

from collections.abc import Iterator, Sequence

from lab.model import CpuSplit, Row, Verdict, use_text
from lab.report.blocks import (
    Block,
    Bullets,
    Drawing,
    Folded,
    Loud,
    Paragraph,
    Section,
    Strong,
    Table,
)
from lab.report.page.figure import Figure, figures_of
from lab.report.page.over_time import moments
from lab.report.progress import figures
from lab.report.remarks import say, texts
from lab.report.result import Trial
from lab.report.text import NOTHING, data, number, place, share
from lab.report.verdicts import missing_text, sentence
from lab.store.records import time_text

STANDINGS = ("resource", "in use", "of the excess", "measured", "failed", "which")
PERCENTILES = ("p50", "p95", "p99", "max")
PARTS = ("server", "proxy", "downstream", "generator", "observation")
ABOUT = "What Prometheus saw in exactly the measured window of each trial."
NOTHING_STORED = "No series were stored of this run, so nothing is drawn over time."
NOT_STORED = "Its series were not stored, so nothing is drawn over time."
NO_SCRIPT = "<noscript><p>These figures need this page's script.</p></noscript>"


def section(shown: Sequence[tuple[Trial, Sequence[Figure]]]) -> Section:
    """Every trial behind a summary, with its figures over time."""
    stored = any(drawn for _, drawn in shown)
    parts: list[Block] = [Paragraph(ABOUT if stored else NOTHING_STORED, "soft")]
    for trial, drawn in shown:
        row, judgement = trial.row, trial.judgement
        known = [(name, value) for name, value in _facts(trial) if value]
        inside = (
            Loud(texts(judgement.reasons)),
            Bullets(texts(judgement.notes)),
            Table(("what", "value"), known, f"Trial {row.trial}"),
            *_standings(trial.verdict, row),
            Drawing(figures_of(drawn, small=True) + NO_SCRIPT) if drawn
            else Paragraph(NOT_STORED if stored else ""),
        )  # fmt: skip
        title = Strong(f"{row.trial.partition('-')[0]} · {place(row)}")
        parts.append(Folded((title, f": {figures(row)}"), inside, key=f"trial-{row.trial}"))
    return Section("Every trial over time", parts, "trials")


def _standings(verdict: Verdict, row: Row) -> Iterator[Block]:
    """The verdict, and every resource that was seen, by its share of the excess."""
    strength = f" ({verdict.strength} evidence)" if verdict.strength else ""
    yield Paragraph((Strong("Verdict"), f": {sentence(verdict)}{strength}"))
    rows = [
        (
            standing.resource,
            use_text(standing) or NOTHING,
            share(standing.share),
            share(standing.measured),
            share(standing.failed),
            standing.detail or NOTHING,
        )
        for standing in verdict.ranked
    ]
    legend = say("legend", "standings")
    if rows:
        ranked = Table(STANDINGS, rows, f"Resources of trial {row.trial}", legend)
        yield Folded(f"{len(rows)} resources, ranked", [ranked])
    yield Bullets([missing_text(gap) for gap in verdict.missing])


def _facts(trial: Trial) -> Iterator[tuple[str, str | None]]:
    row, record = trial.row, trial.measurement.record
    before, balance = record.before, trial.verdict.balance
    yield "route", f"{row.route}, asked by {row.engine}"
    bounds = (
        say(
            "bound",
            "estimate" if bound.estimate else "real",
            rps=bound.rps,
            resource=bound.resource,
            formula=bound.formula,
        )
        for bound in record.bounds
    )
    yield "bounds, req/s", "; ".join(bounds)
    if row.started_at and row.ended_at and row.window_s is not None:
        window = f"{time_text(row.started_at)} to {time_text(row.ended_at)}"
        yield "measured window", f"{window} ({row.window_s:.1f} s)"
    corrected, raw = ([f"{kind}{name}_ms" for name in PERCENTILES] for kind in ("", "raw_"))
    yield "corrected latency, ms", _values(row, PERCENTILES, corrected)
    yield "raw latency, ms", _values(row, PERCENTILES, raw)
    yield "marked in its figures", "; ".join(moment.text for moment in moments(record))
    if before.spread is not None:
        yield "downstream delay, drawn for each call", before.delay_text
    for way in before.ways:
        code = "unmeasured" if way.ms is None else "ms" if way.ms else "short"
        yield f"network, {way.between}", say("way", code, ms=way.ms, mtu=way.mtu)
    yield "toxics in force", ", ".join(before.toxics.in_force) or "none"
    when = "while the connections were held" if record.plan.hold else "after the load"
    if record.live_heap_bytes is not None:
        yield f"live heap {when}", data(record.live_heap_bytes)
    if record.resident_bytes is not None:
        yield f"resident memory {when}", data(record.resident_bytes)
    yield "CPU per answer, µs", _values(row, PARTS, CpuSplit.columns())
    if (busy := record.usage.host_busy) is not None:
        others = balance.others
        lab = None if balance.cpu is None or others is None else balance.cpu - others
        yield "host CPU in the window", say("host", "busy", busy=busy, lab=lab, others=others)


def _values(row: Row, names: Sequence[str], columns: Sequence[str]) -> str | None:
    """Values after their names; None if none is known."""
    values = [getattr(row, column) for column in columns]
    if not any(value is not None for value in values):
        return None
    return ", ".join(f"{name} {number(value)}" for name, value in zip(names, values, strict=True))
