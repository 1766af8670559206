"""The verbs `toxics`, `toxic` and `toxics-reset`: change Toxiproxy, print what is in force."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TextIO

import httpx

from lab.errors import LabUnreachable, harmless
from lab.model.toxics import (
    TOXIC_TYPES,
    WHOLE_PROXY,
    Proxy,
    Toxic,
    parse_toxic,
    refuse_unknown_words,
)
from lab.system.agent import ToxicsSeen
from lab.system.stack import Stack

COLUMNS = ("proxy", "state", "toxic", "type", "stream", "toxicity", "attributes", "since")
TIME = "%Y-%m-%d %H:%M:%S UTC"


def run(
    verb: str,
    words: Mapping[str, str],
    environ: Mapping[str, str],
    out: TextIO,
    transport: httpx.BaseTransport | None = None,
) -> None:
    """Do one of the verbs and print the result to `out`. `words` are the user's KEY=VALUE words for
    it. Raises WordError before anything is changed, and LabUnreachable."""
    with closing(Stack(environ.get("LAB_SECRET", ""), transport)) as stack:
        if verb == "toxic":
            proxies: Sequence[Proxy] = [stack.toxiproxy.apply(parse_toxic(words))]
        else:
            refuse_unknown_words(words, (), verb)
            reset = verb == "toxics-reset"
            proxies = (stack.toxiproxy.reset() if reset else stack.toxiproxy.in_force()).proxies
        try:
            # The agent looks now, so that what the next verb changes again was seen too.
            seen = stack.agent.toxics_seen()
        except LabUnreachable:
            seen = ToxicsSeen(answers=False, watched=None)
        out.write(render(proxies, seen))


def render(proxies: Sequence[Proxy], seen: ToxicsSeen) -> str:
    """A table of plain lines: one per toxic, or one per proxy without any. `since` is empty if
    unknown."""
    before = f"before {seen.watched[0]:{TIME}}" if seen.answers and seen.watched else ""
    rows = [COLUMNS]
    for proxy in proxies:
        state = "up" if proxy.enabled else "DOWN"
        changes = seen.last_changes(proxy.name)
        since = {name: f"{at:{TIME}}" for name, at in changes.items()}
        if not proxy.toxics:
            last = max(since.values(), default="") if proxy.enabled else since.get(WHOLE_PROXY, "")
            rows.append((proxy.name, state, "none", "", "", "", "", last))
        for toxic in proxy.toxics:
            kind = (toxic.name, toxic.type, toxic.stream, f"{toxic.toxicity:g}")
            when = since.get(toxic.name, before)
            rows.append((proxy.name, state, *kind, _attributes(toxic), when))
    shown = [column for column in zip(*rows, strict=True) if any(column[1:])]
    padded = [[cell.ljust(max(map(len, column))) for cell in column] for column in shown]
    lines = ("  ".join(cells).rstrip() for cells in zip(*padded, strict=True))
    return "".join(f"{harmless(line)}\n" for line in lines)


def _attributes(toxic: Toxic) -> str:
    units = {known.name: known.unit for known in TOXIC_TYPES.get(toxic.type, ())}
    values = (f"{name}={value} {units.get(name, '')}" for name, value in toxic.attributes.items())
    return ", ".join(value.rstrip() for value in values)
