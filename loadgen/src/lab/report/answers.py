"""The answer of a run, which comes first on the console and in both reports: a line a server."""

from collections.abc import Iterator, Sequence

from lab.judge.compare import family_of, pairs_in
from lab.model import goodput
from lab.report import capacity, density, findings
from lab.report.blocks import Block, Named, Paragraph
from lab.report.remarks import say
from lab.report.result import Answers, Load, Result
from lab.report.text import counted, median
from lab.report.verdicts import limit


def of(result: Result) -> Answers:
    """What the findings answer; without any the most that each lane answered."""
    given = result.experiment, result.findings
    answers = capacity.answers(*given) or density.answers(*given)
    return answers if answers or findings.lines(result.findings) else of_loads(result.loads)


def blocks(answers: Answers) -> Sequence[Block]:
    notes = [Paragraph(note, "soft") for note, *cells in answers if not cells]
    return Named([line for line in answers if len(line) > 1]), *notes


def plain(answers: Answers) -> list[str]:
    """Without the notes."""
    return [f"{name}: {', '.join(cells)}" for name, *cells in answers if cells]


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
    known = [(rps, load) for load in loads if (rps := load.median(goodput))]
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
