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


def _facts(trial: Trial) -> Iterator[tuple[str, str]]:
    row, record, balance = trial.row, trial.measurement.record, trial.verdict.balance
    before, others = record.before, balance.others
    yield "route", f"{row.route}, asked by {row.engine}"
    bounds = (say("trial", "bound", bound=bound) for bound in record.bounds)
    yield "bounds, req/s", "; ".join(bounds)
    if row.started_at and row.ended_at and row.window_s is not None:
        window = f"{time_text(row.started_at)} to {time_text(row.ended_at)}"
        yield "measured window", f"{window} ({row.window_s:.1f} s)"
    for kind, prefix in (("corrected", ""), ("raw", "raw_")):
        columns = [f"{prefix}{name}_ms" for name in PERCENTILES]
        yield f"{kind} latency, ms", _values(row, PERCENTILES, columns)
    yield "marked in its figures", "; ".join(moment.text for moment in moments(record))
    yield "downstream delay, drawn for each call", before.delay_text if before.spread else ""
    for way in before.ways:
        measured = way.ms is not None
        yield f"network, {way.between}", say("trial", "way", way=way, measured=measured)
    yield "toxics in force", ", ".join(before.toxics.in_force) or "none"
    when = "while the connections were held" if record.plan.hold else "after the load"
    for name, size in (
        ("live heap", record.live_heap_bytes),
        ("resident memory", record.resident_bytes),
    ):
        yield f"{name} {when}", "" if size is None else data(size)
    yield "CPU per answer, µs", _values(row, PARTS, CpuSplit.columns())
    lab = None if balance.cpu is None or others is None else balance.cpu - others
    busy = record.usage.host_busy
    yield "host CPU in the window", say("trial", "busy", busy=busy, lab=lab, others=others)


def _values(row: Row, names: Sequence[str], columns: Sequence[str]) -> str:
    """Values after their names; empty if none is known."""
    values = [getattr(row, column) for column in columns]
    if not any(value is not None for value in values):
        return ""
    return ", ".join(f"{name} {number(value)}" for name, value in zip(names, values, strict=True))
