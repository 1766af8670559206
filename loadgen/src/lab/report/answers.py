"""The answer of a run, which comes first on the console and in both reports: a line a server."""

import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

from rich.console import Console
from rich.text import Text

from lab.judge.compare import family_of, pairs_in
from lab.judge.grouping import lane_of, most_answered, named_lanes
from lab.model import NONE, UNKNOWN, WEAK, Row, Verdict, goodput, three, use_text
from lab.report.blocks import Block, Code, Paragraph
from lab.report.resources import shares_text
from lab.report.table import interval_text
from lab.report.verdicts import agreed

# Answers as `lab.report.findings.answers` has them: the cells of each line, or a note.
Answers = Sequence[tuple[str, ...]]
# So many characters fit in the box of report.html on a screen of 1,280 pixels, with a wide font.
PAGE_WIDTH = 104


def lines(of: Answers, width: int | None = None) -> tuple[str, ...]:
    """The lines, with their cells below each other: name, what is held, and what gave way; further
    cells are on lines of their own. Where one is wider than `width`, what gave way is too."""
    rows = [cells for cells in of if len(cells) > 1]
    if not rows:
        return ()
    name = max(len(cells[0]) for cells in rows)
    held = max((len(cells[1]) for cells in rows if any(cells[2:3])), default=0)
    whole = [
        f"{cells[0]:<{name}}  {cells[1]:<{held}}   {''.join(cells[2:3])}".rstrip() for cells in rows
    ]
    narrow = width is not None and max(map(len, whole)) > width
    indent, found = " " * (name + 2), list[str]()
    for line, cells in zip(whole, rows, strict=True):
        if narrow:
            own = f"{cells[0]:<{name}}  "
            found += _wrapped(cells[1], width or 0, own, f"{indent}  ")
        else:
            found.append(line)
        for one in cells[2 if narrow else 3 :]:
            most = width or len(indent + one)
            found += _wrapped(one, most, indent, f"{indent}  ")
    return tuple(found)


def _wrapped(text: str, width: int, first: str, later: str) -> list[str]:
    """The text in lines of that width. No interval is broken, nor a name with a hyphen."""
    whole = re.sub(
        r"\[[^]]*\]", lambda interval: interval[0].replace(" ", "\N{NO-BREAK SPACE}"), text
    )
    parts = wrap(
        whole,
        width,
        initial_indent=first,
        subsequent_indent=later,
        break_on_hyphens=False,
    )
    return [one.replace("\N{NO-BREAK SPACE}", " ") for one in parts]


def plain(of: Answers) -> tuple[str, ...]:
    return tuple(f"{cells[0]}: {', '.join(filter(None, cells[1:]))}" for cells in of if cells[1:])


def notes(of: Answers) -> tuple[str, ...]:
    return tuple(cells[0] for cells in of if len(cells) == 1)


def blocks(of: Answers) -> Iterator[Block]:
    if told := lines(of, PAGE_WIDTH):
        yield Code(told, "answer")
    for note in notes(of):
        yield Paragraph(note, "soft")


def render(console: Console, of: Answers) -> None:
    for line in lines(of, console.width):
        console.print(Text(line, style="bold"), soft_wrap=True)
    for note in notes(of):
        console.print(Text(note, style="dim"))


def of_loads(rows: Sequence[Row], verdicts: Mapping[str, Verdict]) -> tuple[tuple[str, ...], ...]:
    """The answer of loads that were set: for each lane the most that it answered, over how many
    connections, and what limited it there. They are in the order of the run: to order servers
    is for a comparison."""
    found = [(name, *_most(its, verdicts)) for name, its in named_lanes(rows).items()]
    return (*found, *_what_it_takes(rows))


def _most(rows: Sequence[Row], verdicts: Mapping[str, Verdict]) -> Iterator[str]:
    """The highest goodput that was measured, and what limited it."""
    most = most_answered(rows)
    if most is None:
        yield "no valid trial"
        return
    its, median = most
    cell = its[0]
    rate = "" if cell.offered_rps is None else f" of {cell.offered_rps:,} offered"
    taken = [row.others_cpu for row in its if row.others_cpu]
    others = f" (work outside the lab took {max(taken):.0%} of the CPUs)" if taken else ""
    yield (
        f"reached {interval_text(median, three)} req/s{rate} "
        f"over {cell.concurrency:,} connection{'s' if cell.concurrency > 1 else ''}{others}"
    )
    told = [(row, verdicts[row.trial]) for row in its if row.trial in verdicts]
    if told:
        yield f"limit: {_limit(told, median.median)}"


def _limit(told: Sequence[tuple[Row, Verdict]], median_rps: float) -> str:
    """What most of these trials say, with the figures of the one nearest the median."""
    bottleneck, mine, strength = agreed(told)
    _, of = min(mine, key=lambda one: abs((goodput(one[0]) or 0.0) - median_rps))
    count = f", in {len(mine)} of {len(told)} trials" if len(mine) < len(told) else ""
    if bottleneck == NONE:
        return f"none but the load{f' ({WEAK}{count})' if strength == WEAK else count}"
    if bottleneck == UNKNOWN:
        where = shares_text(of)
        return f"{UNKNOWN}{count}{f' ({where})' if where else ''}"
    in_use = use_text(of.named) if of.named else ""
    return f"{', '.join(filter(None, (bottleneck, in_use)))} ({strength}{count})"


def _what_it_takes(rows: Sequence[Row]) -> Iterator[tuple[str]]:
    several = len(set(map(lane_of, rows))) > 1
    valid: dict[str, set[int | None]] = {lane_of(row): set() for row in rows}
    for row in rows:
        if row.valid:
            valid[lane_of(row)].add(row.launch)
    # As the comparisons of the report say.
    takes = family_of(pairs_in(rows)).launches
    if several and any(valid.values()) and min(map(len, valid.values())) < takes:
        yield (
            f"This orders no servers: that takes {takes} fresh JVMs of each (make run "
            f"EXP=… LAUNCHES={takes}). The rate that it sustains: make capacity.",
        )
