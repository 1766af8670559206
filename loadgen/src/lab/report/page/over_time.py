"""The figures of a trial's window over time, with what was done in it."""

from collections.abc import Sequence
from dataclasses import dataclass

from lab.model import Observation, SeriesError, TrialRecord, three
from lab.report.page.figure import Figure, Spec, axis, by_series, layer, view
from lab.report.page.palette import HUES
from lab.report.page.panels import Line, Panel, observed
from lab.report.result import Trial

SIZE = 320, 185
NUMBER = "format(datum.{},',.4~r')"


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
    done = [(peak.started_s, f"spike of {extra:,} connections begins") for peak in record.peaks]
    done += [(peak.ended_s, "spike ends") for peak in record.peaks]
    for step in record.script:
        problem = f" ({step.problem})" if step.problem else ""
        done.append((step.started_s, f"{step.change}{problem}"))
    return tuple(
        Moment(number, at_s - record.window_offset_s, what)
        for number, (at_s, what) in enumerate(sorted(done, key=lambda step: step[0]), start=1)
    )


def over_time(trial: Trial, seen: Observation | None) -> tuple[Figure, ...]:
    """The figures of all panels that show anything. None without series, or if they are not what
    the lab writes: the trial's row or verdict says so."""
    if seen is None:
        return ()
    try:
        panels = observed(seen, trial.row.server, trial.row.route)
    except SeriesError:
        return ()
    opens, closes = seen.window
    marked = moments(trial.measurement.record)
    return tuple(
        figure(f"{trial.row.trial}-p{number}", panel, lines, closes - opens, marked)
        for number, (panel, lines) in enumerate(panels, start=1)
    )


def figure(
    name: str, panel: Panel, lines: Sequence[Line], length_s: float, marked: Sequence[Moment]
) -> Figure:
    """A panel over a window of that length: the highest lines, as many as there are hues, without
    those that never leave 0 if another one does."""
    ranked = sorted(lines, key=lambda line: max(line.values), reverse=True)
    most = [line for line in ranked[:HUES] if line is ranked[0] or max(line.values) > 0]
    drawn = [line for line in lines if line in most]
    labels = [line.label for line in drawn]
    series = by_series(labels, range(len(labels)), SIZE[0])
    tip = f"datum.series+'\\n'+{NUMBER.format('x')}+' s\\n'+{NUMBER.format('y')}+' {panel.unit}'"
    # The points, which a pointer finds, are not seen.
    hue = {"color": series["color"], "strokeOpacity": series["opacity"]}
    hue["tooltip"] = {"field": "tip"}
    point = {"opacity": 0, "size": 80}

    def paths(name: str, kept: Sequence[Line], **marked: object) -> Spec:
        records = [_record(line) for line in kept]
        transform = [{"flatten": ["x", "y"]}, {"calculate": tip, "as": "tip"}]
        return {**layer(name, records, "line", hue, point=point, **marked), "transform": transform}

    inside = [moment for moment in marked if 0 <= moment.at_s <= length_s]
    marks = [
        {"x": moment.at_s, "number": str(moment.number), "tip": moment.text} for moment in inside
    ]
    soft, hint = {"color": "var(--soft)"}, {"tooltip": {"field": "tip"}}
    upright = {**hint, "y": {"value": 0}, "y2": {"value": "height"}}
    number = {"text": {"field": "number"}, "y": {"value": 0}}
    preset = [line for line in drawn if line.is_set]
    layers = (
        paths("lines", [line for line in drawn if not line.is_set]),
        paths("set", preset, strokeDash=[5, 4]),
        layer("marks", marks, "rule", upright, strokeDash=[2, 3], **soft),
        layer("numbers", marks, "text", number, baseline="bottom", fontSize=11, **soft),
    )
    more = len(lines) - len(drawn)
    below = {"broken: set, not measured": preset, f"{more} more, not higher": more}
    highest = max(max(line.values) for line in drawn)
    axes = {
        "x": axis("s", {"domain": [0, length_s], "nice": False}, "x", tickCount=6),
        "y": axis(panel.unit, {"domain": [0, highest or 1], "nice": True}, "y", tickCount=4),
    }
    spec = view(panel.title, below, SIZE, axes, labels, layers)
    texts = [*map(_extent, drawn), *(f"{moment.text}." for moment in inside)]
    return Figure(name, panel.title, f"{panel.text} In {panel.unit}: {' '.join(texts)}", spec)


def _record(line: Line) -> Spec:
    x, y = zip(*line.points, strict=True)
    return {"series": line.label, "x": [*map(_short, x)], "y": [*map(_short, y)]}


def _short(value: float | None) -> float | None:
    """Four digits are more than a figure shows, and pack well."""
    return None if value is None else float(f"{value:.4g}")


def _extent(line: Line) -> str:
    return f"{line.label}: {three(min(line.values))} to {three(max(line.values))}."
