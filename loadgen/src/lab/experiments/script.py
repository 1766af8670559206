"""The script of toxics in an experiment's file: [[toxics]] tables in the order of time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lab.errors import LabError, WordError
from lab.experiments.reading import Asked, rules
from lab.experiments.reading.tables import Table, tables
from lab.model import ToxicStep
from lab.model.toxic_script import applied
from lab.model.toxic_words import YES, Put, parse_toxic
from lab.model.toxics import DEFAULT_PROXY, Proxy, ToxicsInForce

KEY = "toxics"
# Keys besides the words of `make toxic`; `remove` names the toxic that is removed.
OTHER_KEYS = ("at", "remove")
# Toxiproxy 2.12 does not answer while such a toxic waits, and the driver cannot wait longer.
LONGEST_RESET_MS = 1000


@dataclass(frozen=True, slots=True)
class Step:
    """One table: its place for messages, its time, and the words of `make toxic`."""

    place: str
    at_s: int
    words: Mapping[str, str]


def read(asked: Asked) -> tuple[Step, ...]:
    """The steps of a file. Raises WordError."""
    return tuple(map(_step, tables(asked, KEY)))


def checked(
    steps: Sequence[Step], scaled: Callable[[int], int], duration_s: int, steady_s: int
) -> tuple[ToxicStep, ...]:
    """The steps with scaled times. `duration_s` and `steady_s` are scaled already.

    Raises WordError unless every step is possible in its turn and time, the first has calm before
    it, the last leaves no toxic, and time to recover follows it."""
    begins = ToxicsInForce((Proxy(DEFAULT_PROXY, "", "", True, ()),))
    now = begins
    found: list[ToxicStep] = []
    for step in steps:
        at_s = scaled(step.at_s)
        if found and at_s < found[-1].at_s:
            raise WordError(f"{step.place}: at={step.at_s}s is before the step above it")
        try:
            now = applied(now, parse_toxic(step.words))
        except LabError as failure:
            raise WordError(f"{step.place}: {failure}") from None
        found.append(ToxicStep(at_s, step.words))
    first, last = steps[0], steps[-1]
    if found[0].at_s < steady_s:
        raise WordError(
            f"{first.place}: at={first.at_s}s leaves less than faults.steady of calm before it"
        )
    if found[-1].at_s + steady_s + 1 > duration_s:
        raise WordError(
            f"{last.place}: at={last.at_s}s leaves less than faults.steady of load.duration after "
            "it, so nothing could recover"
        )
    if now != begins:
        left = [toxic.name for _, toxic in now.toxics]
        left += [f"the proxy {proxy.name} down" for proxy in now.proxies if not proxy.enabled]
        raise WordError(
            f"{last.place}: the last step leaves {', '.join(left)}; allowed: a script that ends "
            "as it began"
        )
    return tuple(found)


def _step(of: Table) -> Step:
    place, table = of.place, of.values
    for key, value in table.items():
        if key != key.lower() or type(value) not in (str, int, float):
            raise of.refused(
                f"{key}={value!r}",
                "at, remove, and the words of `make toxic` in small letters, each a text or a "
                "number",
            )
    if "at" not in table:
        raise WordError(f'{place}: at is missing; give the time in the window, as at = "10s"')
    at_s = of.read("at", str(table["at"]), rules.seconds(1))
    words = {key.upper(): str(value) for key, value in table.items() if key not in OTHER_KEYS}
    if "remove" in table:
        name = str(table["remove"])
        words |= {"NAME": name, "REMOVE": YES}
    try:
        request = parse_toxic(words)
    except WordError as failure:
        raise WordError(f"{place}: {failure}") from None
    if isinstance(request, Put) and request.toxic.type == "reset_peer":
        wait_ms = request.toxic.attributes["timeout"]
        if wait_ms > LONGEST_RESET_MS:
            raise of.refused(
                f"timeout={wait_ms}",
                f"0..{LONGEST_RESET_MS} (ms) in a script, as Toxiproxy does not answer meanwhile",
            )
    return Step(place, at_s, words)
