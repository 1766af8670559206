"""The answer of a run, which comes first on the console and in both reports: a line a server."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lab.judge.compare import family_of, pairs_in
from lab.model import goodput
from lab.report import findings
from lab.report.blocks import Block, Bullets, Paragraph, Strong
from lab.report.remarks import say
from lab.report.result import Answers, Load, Result
from lab.report.text import counted, median
from lab.report.verdicts import limit

# The name of the kind whose loads were set, not searched.
SET_LOADS = "loads"


def of(result: Result) -> Answers:
    """What the findings answer; else for loads that were set the most that each lane answered."""
    if result.answered:
        return findings.answers(result.experiment, result.findings)
    return of_loads(result.loads) if result.kind.name == SET_LOADS else ()


def lines(answers: Answers) -> list[tuple[str, ...]]:
    return [cells for cells in answers if len(cells) > 1]


def notes(answers: Answers) -> list[str]:
    return [cells[0] for cells in answers if len(cells) == 1]


def plain(answers: Answers) -> list[str]:
    return [f"{name}: {', '.join(filter(None, cells))}" for name, *cells in lines(answers)]


def blocks(answers: Answers) -> Sequence[Block]:
    bullets = [
        (Strong(name), f": {'; '.join(filter(None, cells))}") for name, *cells in lines(answers)
    ]
    return Bullets(bullets), *(Paragraph(note, "soft") for note in notes(answers))


def render(console: Console, answers: Answers) -> None:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(overflow="fold")
    grid.add_column()
    for name, *cells in lines(answers):
        grid.add_row(Text(name, style="bold"), Text("\n".join(filter(None, cells))))
    if grid.row_count:
        console.print(grid)
    for note in notes(answers):
        console.print(Text(note, style="dim"))


def of_loads(loads: Sequence[Load]) -> Answers:
    """For each lane, route and engine the most that was answered, over how many connections, and
    what limited it there. They are in the order of the run: only a comparison orders servers."""
    places: dict[tuple[str, str, str], list[Load]] = {}
    for load in loads:
        places.setdefault((load.lane, load.cell.route, load.cell.engine), []).append(load)
    differ = [at for at in (1, 2) if len({place[at] for place in places}) > 1]
    most = [
        (" ".join((place[0], *(place[at] for at in differ))), *_most(group))
        for place, group in places.items()
    ]
    return (*most, *_what_it_takes(loads))


def _most(loads: Sequence[Load]) -> Iterator[str]:
    known = [(found, load) for load in loads if (found := load.median(goodput))]
    if not known:
        yield say("answers", "nothing")
        return
    rps, best = max(known, key=lambda each: each[0].median)
    yield say(
        "answers",
        "reached",
        rps=median(rps),
        offered=best.cell.offered_rps,
        connections=counted(best.cell.concurrency, "connection"),
        others=max((row.others_cpu for row in best.valid if row.others_cpu), default=None),
    )
    if best.verdicts:
        yield f"limit: {limit(best, use=True)}"


def _what_it_takes(loads: Sequence[Load]) -> Iterator[tuple[str]]:
    """That servers are not ordered, if too few launches of one are valid."""
    valid: dict[str, set[int]] = {load.lane: set() for load in loads}
    for load in loads:
        valid[load.lane] |= {row.launch for row in load.valid}
    # As the comparisons of the report say.
    takes = family_of(pairs_in([row for load in loads for row in load.rows])).launches
    if len(valid) > 1 and any(valid.values()) and min(map(len, valid.values())) < takes:
        yield (say("answers", "no-order", takes=takes),)
