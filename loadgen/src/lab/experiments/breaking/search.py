"""Which load is tried next, from rows alone, so the same rows lead to the same load: ramp until a
load is not held, then bisect.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lab.experiments.objective import Objective, Outcome, by_others, gave_way, judged
from lab.judge.slo import judged_ms
from lab.load.engines.base import MAX_THREADS
from lab.model import Row, goodput
from lab.report.remarks import text_of

# So many trials of a load that do not hold it break it. One that holds it is enough: a load that a
# server holds every other time counts as held in three of four cases, so near its limit the search
# errs upwards. The finding says so where the largest load that was held was not held at once.
TRIES = 2
# So many trials of a load that say nothing of the server leave it unknown. Where the CPUs are full
# every fifth trial is such a one (22 of 114 of the published capacity-models).
UNTOLD = 4


@dataclass(frozen=True, slots=True)
class Stress:
    """What to search; see `search` for the steps, all in connections. A load is broken where the
    objective fails, or where throughput falls below the best so far by more than `fall` (a share).
    """

    objective: Objective
    first: int
    step: int
    most: int
    resolution: int
    fall: float

    def __post_init__(self) -> None:
        if not 1 <= self.first <= self.most or self.step < 1 or self.resolution < 1:
            raise ValueError("1 <= first <= most, and step and resolution start at 1")
        if not 0 < self.fall < 1:
            raise ValueError("fall is a share between 0 and 1")

    @property
    def p95_ms(self) -> float:
        """The p95 that the objective allows: corrected in an open load, raw in a closed one."""
        return self.objective.longest_s * 1000


@dataclass(frozen=True, slots=True)
class Search:
    """What the rows of one server and launch say.

    `load` is the next one to try (None: the search is over). `held` is the largest load that was
    held, and `after` why a trial before did not hold it (empty: none did not). `broke` are the
    trials that did not hold the smallest load that was not held, and `why` is the reason. `stuck`
    is the smallest load of which UNTOLD rows
    tell nothing, and `untold` why the last of them does not."""

    load: int | None
    held: Row | None = None
    broke: tuple[Row, ...] = ()
    why: str = ""
    stuck: Row | None = None
    untold: str = ""
    after: str = ""

    @property
    def broken(self) -> Row | None:
        """A trial of the smallest load that was not held."""
        return self.broke[-1] if self.broke else None


def search(stress: Stress, rows: Sequence[Row]) -> Search:
    """Where the search stands after these rows of one server and launch, in the order of time.

    It tries each load until one trial held it, TRIES did not, or UNTOLD say nothing of the server
    (`outcome_of`). The loads are first,
    first + step, … up to most while they are held. Then it tries the middle between the largest
    held load and the smallest load that is broken or cannot be told, until these differ by at most
    `resolution`. The middle is a number of connections that any number of an engine's threads can
    share, if there is one. A row of another load than the next one is left out until that is next:
    of a trial that was damaged, another one takes the place.
    """
    load: int | None = stress.first
    held: Row | None = None
    broke: tuple[Row, ...] = ()
    stuck: Row | None = None
    why = after = untold = ""
    left = list(rows)
    valid: list[Row] = []
    misses: list[tuple[Row, str]] = []
    unknown = 0
    while (row := next((one for one in left if one.concurrency == load), None)) is not None:
        left.remove(row)
        outcome, said = outcome_of(stress, row, valid, after_miss=bool(misses))
        if row.valid:
            valid.append(row)
        if outcome == "broke":
            misses.append((row, said))
        elif outcome == "held":
            held, after = row, "; ".join(dict.fromkeys(one for _, one in misses))
        else:
            unknown += 1
        if len(misses) == TRIES:
            broke = tuple(one for one, _ in misses)
            why = f"{'; '.join(dict.fromkeys(one for _, one in misses))}, in {TRIES} trials"
        elif unknown == UNTOLD:
            stuck, untold = row, said
        elif held is not row:
            continue
        misses, unknown = [], 0
        tops = [row.concurrency for row in (*broke, stuck) if row is not None]
        load = _next(stress, held, min(tops, default=None))
    return Search(load, held, broke, why, stuck, untold, after)


def outcome_of(
    stress: Stress, row: Row, before: Sequence[Row], *, after_miss: bool
) -> tuple[Outcome, str]:
    """Whether a trial held its load, and why not, as the objective judges it (`judged`). Besides,
    a valid one must not answer less than smaller loads did, the valid trials `before` of the same
    server and launch. `after_miss`: as of `gave_way`."""
    outcome, why = judged(stress.objective, row, after_break=after_miss)
    if row.mode == "closed" and not row.valid and outcome != "untold":
        # No backlog grows in it, so within the objective it tells nothing: neither that it broke,
        # nor, slowed by its warm-up, that it answered as much as a smaller load.
        late = (judged_ms(row, "p95") or 0) > stress.p95_ms or gave_way(row, after_miss=after_miss)
        if outcome == "held" or not late:
            return "untold", text_of(row)
    if not row.valid or outcome == "untold":
        return outcome, why
    rps = goodput(row) or 0.0
    smaller = [goodput(one) or 0.0 for one in before if one.concurrency < row.concurrency]
    if smaller and rps < max(smaller) * (1 - stress.fall):
        fell = (
            f"{rps:.0f} req/s, more than {stress.fall:.0%} below the {max(smaller):.0f} of a "
            "smaller load"
        )
        if other := by_others(row):
            return "untold", f"{other} ({fell})"
        return "broke", " and ".join(filter(None, (why, fell)))
    return outcome, why


def _next(stress: Stress, held: Row | None, top: int | None) -> int | None:
    if top is None:
        at = held.concurrency if held else 0
        return None if at >= stress.most else min(at + stress.step, stress.most)
    if held is None or top - held.concurrency <= stress.resolution:
        return None
    return _middle(held.concurrency, top)


def _middle(low: int, high: int) -> int:
    middle = (low + high) // 2
    even = middle - middle % MAX_THREADS
    return even if even > low else middle


def most_trials(stress: Stress) -> int:
    """The most trials of a search, without invalid ones: the ramp, and the halving of its last
    step, each load TRIES times."""
    steps = -(-(stress.most - stress.first) // stress.step)
    halvings = _halvings(stress, stress.most - stress.step, stress.most) if steps else 0
    return TRIES * (1 + steps + halvings)


def _halvings(stress: Stress, low: int, top: int) -> int:
    if top - low <= stress.resolution:
        return 0
    middle = _middle(low, top)
    return 1 + max(_halvings(stress, low, middle), _halvings(stress, middle, top))


def rows_of(rows: Sequence[Row], server: str, launch: int) -> list[Row]:
    return [row for row in rows if (row.server, row.launch) == (server, launch)]
