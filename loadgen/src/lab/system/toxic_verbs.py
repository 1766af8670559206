"""The verbs `toxics`, `toxic` and `toxics-reset`: change Toxiproxy, print what is in force."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime
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
from lab.system.agent import Agent, ToxicsSeen
from lab.system.http import Http
from lab.system.stack import Urls
from lab.system.toxiproxy import Toxiproxy

COLUMNS = ("proxy", "state", "toxic", "type", "stream", "toxicity", "attributes", "since")


def run(
    verb: str,
    words: Mapping[str, str],
    environ: Mapping[str, str],
    out: TextIO,
    transport: httpx.BaseTransport | None = None,
) -> None:
    """Do one of the verbs and print the result to `out`. `words` are the user's KEY=VALUE words for
    it. Raises WordError before anything is changed, and LabUnreachable."""
    urls = Urls.read(environ)
    with closing(Http(transport, urls.secret)) as http:
        toxiproxy = Toxiproxy(http, urls.toxiproxy)
        if verb == "toxic":
            proxies: Sequence[Proxy] = [toxiproxy.apply(parse_toxic(words))]
        else:
            refuse_unknown_words(words, (), verb)
            reset = verb == "toxics-reset"
            proxies = (toxiproxy.reset() if reset else toxiproxy.in_force()).proxies
        try:
            # The agent looks now, so that what the next verb changes again was seen too.
            seen = Agent(http, urls.agent).toxics_seen()
        except LabUnreachable:
            seen = ToxicsSeen(answers=False, watched=None)
        out.write(render(proxies, seen))


def render(proxies: Sequence[Proxy], seen: ToxicsSeen) -> str:
    """A table of plain lines: one per toxic, or one per proxy without any. Since when is empty
    where the agent cannot tell."""
    before = ""
    if seen.answers and seen.watched:
        before = f"before {_time(seen.watched[0])}"
    rows = [COLUMNS]
    for proxy in proxies:
        state = "up" if proxy.enabled else "DOWN"
        changes = {toxic: at for at, name, toxic in seen.changes if name == proxy.name}
        if not proxy.toxics:
            last = max(changes.values()) if proxy.enabled and changes else changes.get(WHOLE_PROXY)
            rows.append((proxy.name, state, "none", "", "", "", "", _time(last) if last else ""))
        for toxic in proxy.toxics:
            share, values = f"{toxic.toxicity:g}", _attributes(toxic)
            since = _time(changes[toxic.name]) if toxic.name in changes else before
            rows.append(
                (proxy.name, state, toxic.name, toxic.type, toxic.stream, share, values, since)
            )
    shown = [i for i in range(len(COLUMNS)) if any(row[i] for row in rows[1:])]
    widths = {i: max(len(row[i]) for row in rows) for i in shown}
    lines = ["  ".join(row[i].ljust(widths[i]) for i in shown).rstrip() for row in rows]
    return "".join(f"{harmless(line)}\n" for line in lines)


def _attributes(toxic: Toxic) -> str:
    units = {known.name: known.unit for known in TOXIC_TYPES.get(toxic.type, ())}
    values = [f"{name}={value} {units.get(name, '')}" for name, value in toxic.attributes.items()]
    return ", ".join(value.rstrip() for value in values)


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")
