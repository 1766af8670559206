"""The script of toxics in an experiment's file: [[toxics]] tables in the order of time."""

from __future__ import annotations

from msgspec import Struct

from lab.errors import LabError, WordError
from lab.kinds.reading import Asked, Settings
from lab.kinds.reading.settings import Duration, tables
from lab.model import ToxicStep
from lab.model.toxics import DEFAULT_PROXY, YES, Proxy, Toxic, ToxicsInForce, applied, parse_toxic

KEY = "toxics"
# Toxiproxy 2.12 does not answer while such a toxic waits, and the driver cannot wait longer.
LONGEST_RESET_MS = 1000


class Step(Struct, frozen=True):
    """The time of a table."""

    at_s: Duration


def read(asked: Asked, duration_s: int, steady_s: int) -> tuple[ToxicStep, ...]:
    """The steps of a file.

    Raises WordError unless every step is possible in its turn and time, the first has calm before
    it (`steady_s`), the last leaves no toxic, and time to recover follows it in the `duration_s` of
    the load."""
    begins = now = ToxicsInForce((Proxy(DEFAULT_PROXY, "", "", True, ()),))
    steps: list[ToxicStep] = []
    for settings in tables(asked, KEY):
        at_s, words = settings.table("", Step).at_s, _words(settings)
        if steps and at_s < steps[-1].at_s:
            raise settings.refuse("at", "is before the step above it")
        if at_s < steady_s:
            raise settings.refuse("at", "leaves less than faults.steady of calm before it")
        if at_s + steady_s + 1 > duration_s:
            what = "leaves less than faults.steady of load.duration after it"
            raise settings.refuse("at", f"{what}, so nothing could recover")
        try:
            request = parse_toxic(words)
            now = applied(now, request)
        except LabError as failure:
            raise WordError(f"{settings.place}: {failure}") from None
        if isinstance(request.value, Toxic) and request.value.type == "reset_peer":
            wait_ms = request.value.attributes["timeout"]
            if wait_ms > LONGEST_RESET_MS:
                what = f"is not allowed in a script; allowed: 0..{LONGEST_RESET_MS} (ms)"
                raise settings.refuse("timeout", what)
        steps.append(ToxicStep(at_s, words))
    if now != begins:
        left = [toxic.name for _, toxic in now.toxics]
        left += [f"the proxy {proxy.name} down" for proxy in now.proxies if not proxy.enabled]
        raise WordError(
            f"{settings.place}: the last step leaves {', '.join(left)}; allowed: a script that "
            "ends as it began"
        )
    return tuple(steps)


def _words(settings: Settings) -> dict[str, str]:
    """The words of `make toxic` of a table. Raises WordError."""
    words: dict[str, str] = {}
    for key, given in settings.given.items():
        if key != key.lower() or type(given.value) not in (str, int, float):
            what = "is not allowed; allowed: at, remove, and words of `make toxic` in small letters"
            raise settings.refuse(key, what)
        if key == "remove":
            words |= {"NAME": str(given.value), "REMOVE": YES}
        elif key != "at":
            words[key.upper()] = str(given.value)
    return words
