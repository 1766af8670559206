"""The verbs `toxics`, `toxic` and `toxics-reset`: ask Toxiproxy, print what is in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TextIO

import httpx

from lab.errors import LabUnreachable, harmless
from lab.model.toxic_script import WHOLE_PROXY
from lab.model.toxic_words import parse_none, parse_toxic
from lab.model.toxics import Proxy, Toxic, units_of
from lab.system.agent import Agent
from lab.system.http import Http
from lab.system.stack import Urls
from lab.system.toxiproxy import Toxiproxy

COLUMNS = ("proxy", "state", "toxic", "type", "stream", "toxicity", "attributes", "since")


@dataclass(frozen=True, slots=True)
class Since:
    """When each (proxy, toxic name; WHOLE_PROXY for down and up) was last seen to change; what is
    not in it has not changed since the agent's first look."""

    changes: Mapping[tuple[str, str], datetime]
    first_look: datetime | None

    def of(self, proxy: str, toxic: str) -> str:
        if (proxy, toxic) in self.changes:
            return _time(self.changes[proxy, toxic])
        return f"before {_time(self.first_look)}" if self.first_look else ""

    def of_proxy(self, proxy: str, *, down: bool) -> str:
        """When it went down, or else the last of its changes; empty where none was seen."""
        seen = [
            at
            for (name, toxic), at in self.changes.items()
            if name == proxy and (toxic == WHOLE_PROXY or not down)
        ]
        return _time(max(seen)) if seen else ""


NOBODY_KNOWS = Since({}, None)


def run(
    verb: str,
    words: Mapping[str, str],
    environ: Mapping[str, str],
    out: TextIO,
    transport: httpx.BaseTransport | None = None,
) -> None:
    """Do one of the verbs `toxics`, `toxic`, `toxics-reset` and print the result to ``out``.

    ``words`` are the user's KEY=VALUE words for this verb. Reads LAB_TOXIPROXY_URL and
    LAB_AGENT_URL of ``environ``. Raises WordError (before anything is changed) or
    LabUnreachable.
    """
    urls = Urls.read(environ)
    with closing(Http(transport, urls.secret)) as http:
        toxiproxy = Toxiproxy(http, urls.toxiproxy)
        if verb == "toxics":
            parse_none(words, verb)
            proxies = toxiproxy.in_force().proxies
            out.write(render(proxies, _since(urls.agent, http)))
            return
        if verb == "toxic":
            out.write(render([toxiproxy.apply(parse_toxic(words))]))
        elif verb == "toxics-reset":
            parse_none(words, verb)
            out.write(render(toxiproxy.reset().proxies))
        else:
            raise ValueError(f"not a verb of toxics: {verb}")
        # It looks now, so that what the next verb changes again was seen too.
        with suppress(LabUnreachable):
            Agent(http, urls.agent).toxics_seen()


def render(proxies: Sequence[Proxy], since: Since = NOBODY_KNOWS) -> str:
    """A table of plain lines: one per toxic, or one per proxy without any."""
    rows = [COLUMNS]
    for proxy in proxies:
        state = "up" if proxy.enabled else "DOWN"
        if not (proxy.enabled and proxy.toxics):
            changed = since.of_proxy(proxy.name, down=not proxy.enabled)
            none = "" if proxy.toxics else "none"
            rows.append((proxy.name, state, none, "", "", "", "", changed))
        for toxic in proxy.toxics:
            changed = since.of(proxy.name, toxic.name)
            share, values = f"{toxic.toxicity:g}", _attributes(toxic)
            rows.append(
                (proxy.name, state, toxic.name, toxic.type, toxic.stream, share, values, changed)
            )
    shown = [i for i in range(len(COLUMNS)) if any(row[i] for row in rows[1:])]
    widths = {i: max(len(row[i]) for row in rows) for i in shown}
    lines = ["  ".join(row[i].ljust(widths[i]) for i in shown).rstrip() for row in rows]
    return "".join(f"{harmless(line)}\n" for line in lines)


def _attributes(toxic: Toxic) -> str:
    units = units_of(toxic.type)
    values = [f"{name}={value} {units.get(name, '')}" for name, value in toxic.attributes.items()]
    return ", ".join(value.rstrip() for value in values)


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def _since(agent_url: str, http: Http) -> Since:
    """The changes that the agent saw, with their times. Empty if it cannot tell: the table
    then says less, and nothing wrong."""
    try:
        seen = Agent(http, agent_url).toxics_seen()
    except LabUnreachable:
        return NOBODY_KNOWS
    if seen.watched is None or not seen.answers:
        return NOBODY_KNOWS
    return Since({(proxy, toxic): at for at, proxy, toxic in seen.changes}, seen.watched[0])
