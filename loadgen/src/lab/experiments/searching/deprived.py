"""Whether a rate that is held takes the machine's CPUs: some are taken away. Pure.

Nobody can add CPUs to the machine, so where the host's CPUs gave way nothing can be lifted. A
spinner takes a share of them away instead, as in `explain`, and a larger one. In one JVM, in turns,
the rate that was held must still be held with all CPUs, and must break without these; and a rate
that is lower by more than what was taken must be held without them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from lab.experiments.objective import Objective, Outcome, judged
from lab.experiments.searching.rates import TRIES
from lab.experiments.searching.state import Rung
from lab.model import ALL_CPUS, FEWER_CPUS, Row

# The arms of these trials: with all CPUs, and without those that are taken away. All are of the JVM
# that runs, so their launch is 0.
ALL, FEWER = ARMS = (ALL_CPUS, FEWER_CPUS)
# The share of the machine's CPUs that the spinner is asked to take. It is large, as a rate is held
# or not: trials near the highest one go either way.
SPIN = 0.2
# One that got less than this share has taken too little to be felt.
LEAST_SPUN = 0.05
# The share of the held rate that must be held without the CPUs that are taken away: lower than what
# they leave (1 - SPIN) by what JVMs and trials scatter.
PART = 0.7


@dataclass(frozen=True, slots=True)
class Deprived:
    """How far these trials are. `whole`: the held rate with all CPUs; `less`: without those that
    are taken; `part`: a lower rate without them. `spun`: the shares that were taken."""

    whole: Rung
    less: Rung
    part: Rung
    spun: tuple[float, ...] = ()

    @classmethod
    def of(cls, objective: Objective, rate: int, rows: Sequence[Row]) -> Deprived:
        """As far as these rows of ARMS tell, in the order of time, of which each is the trial that
        was next. One of another rate is left out."""
        found = cls(Rung(rate), Rung(rate), Rung(max(1, round(PART * rate))))
        for row in rows:
            name = found.next
            if name is None:
                break
            if (row.offered_rps, row.arm) == (found.rung(name).rate, arm_of(name)):
                found = found._with(name, objective, row)
        return found

    @property
    def next(self) -> str | None:
        """The field whose trial is next; None: they are over."""
        for names, wanted in ((("whole", "less"), ("held", "broke")), (("part",), ("held",))):
            told = [outcome(self.rung(name)) for name in names]
            if any(one not in (None, own) for one, own in zip(told, wanted, strict=True)):
                return None
            left = [name for name, one in zip(names, told, strict=True) if one is None]
            if left:
                return min(left, key=lambda name: self.rung(name).trials)
        return None

    def rung(self, name: str) -> Rung:
        """The rate of a field, with its trials."""
        found: Rung = getattr(self, name)
        return found

    def _with(self, name: str, objective: Objective, row: Row) -> Deprived:
        rung, spun = getattr(self, name), self.spun
        said, why = judged(objective, row)
        if name != "whole":
            spun = (*spun, *([] if row.spun is None else [row.spun]))
            if (row.spun or 0.0) < LEAST_SPUN:
                said, why = "untold", f"the spinner got {row.spun or 0:.0%} of the CPUs only"
        found = dataclasses.replace(self, spun=spun)
        return dataclasses.replace(found, **{name: rung.told(said, why, row)})

    @property
    def text(self) -> str:
        if not self.less.trials:
            return "not tried yet with fewer CPUs"
        shares = list(dict.fromkeys(f"{share:.0%}" for share in sorted(self.spun))) or ["some"]
        taken = f"with {' to '.join((shares[0], *shares[1:][-1:]))} of the CPUs taken away it"
        rate, lower = f"{self.less.rate:,} req/s", f"{self.part.rate:,} req/s"
        whole, less, part = map(outcome, (self.whole, self.less, self.part))
        if less == "held":
            return f"{taken} still holds {rate} (not confirmed: this rate does not take all CPUs)"
        if whole == "broke":
            again = f"{rate} broke again with all CPUs"
            return f"inconclusive: {again}, in the JVM that was to be tried with fewer"
        unknown = [one for one in (self.whole, self.less, self.part) if outcome(one) == "untold"]
        if unknown:
            return f"{taken} cannot be told: {unknown[0].untold[-1][1]}"
        if self.next is not None:
            return "not finished with fewer CPUs"
        if part == "broke":
            deep = f"{taken} breaks at {rate}, and at {lower} too"
            return f"{deep} (inconclusive: the spinner does more than take CPUs)"
        if self.whole.broke or self.less.held or self.part.broke:
            return (
                f"{taken} holds {rate} {_counts(self.less)} and {lower} {_counts(self.part)}, and "
                f"with all of them it holds {rate} {_counts(self.whole)} (inconclusive: at a rate "
                "near what it holds trials go either way)"
            )
        return (
            f"{taken} breaks at {rate} and holds {lower}, and with all of them it held {rate} in "
            "between (confirmed: this rate takes the CPUs; that more of them would raise it is "
            "not tried)"
        )


def _counts(of: Rung) -> str:
    return f"in {len(of.held)} of {len(of.held) + len(of.broke)} trials"


def arm_of(name: str) -> str:
    return ALL if name == "whole" else FEWER


def outcome(of: Rung) -> Outcome | None:
    """What the trials of a rate agree on; None: not yet."""
    counts: tuple[tuple[Outcome, int], ...] = (
        ("held", len(of.held)),
        ("broke", len(of.broke)),
        ("untold", len(of.untold)),
    )
    return next((name for name, count in counts if count >= TRIES), None)
