"""Toxics: those in force, the words of `make toxic …` as a request, and its effect. No I/O.

Types, attributes and names are those of Toxiproxy 2.12
(https://github.com/Shopify/toxiproxy/blob/v2.12.0/README.md#toxics).

| words                              | request                                              |
|------------------------------------|------------------------------------------------------|
| TYPE=latency LATENCY=300 [NAME= …] | a toxic as described, whatever had its name          |
| NAME=latency LATENCY=100           | change one in force, only what is given              |
| NAME=latency REMOVE=yes            | remove it                                            |
| TYPE=down, TYPE=up                 | the proxy refuses connections, or takes them         |
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import replace
from typing import Annotated, Literal, get_args

from msgspec import Meta
from msgspec.structs import force_setattr

from lab.errors import LabUnreachable, WordError
from lab.model.record import Record, Whole

HOUR_MS = 3_600_000
LARGEST = 2**31 - 1
Stream = Literal["downstream", "upstream"]
STREAMS: tuple[Stream, ...] = get_args(Stream)
DEFAULT_STREAM = "downstream"
DEFAULT_PROXY = "downstream"
# Among names of toxics: the proxy itself, being up or down.
WHOLE_PROXY = ""
# Not toxics in Toxiproxy but the proxy itself, refusing connections or taking them.
DOWN, UP = "down", "up"
YES = "yes"
# Names become path segments of the API and label values of the metrics.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_WHOLE = re.compile(r"[0-9]{1,15}")
# Toxiproxy keeps a float32: more digits would read back as other ones.
_SHARE = re.compile(r"0|1|0?\.[0-9]{1,6}|1\.0{1,6}")
_Text = Annotated[str, Meta(min_length=1)]


class Attribute(Record):
    """One attribute of a toxic type: a whole number in ``unit``, within the limits, both
    included. ``default`` None means that it must be given."""

    name: str
    unit: str
    minimum: int = 0
    maximum: int = HOUR_MS
    default: int | None = None

    @property
    def allowed(self) -> str:
        return f"a whole number {self.minimum}..{self.maximum} ({self.unit})"


TOXIC_TYPES: Mapping[str, tuple[Attribute, ...]] = {
    "latency": (Attribute("latency", "ms"), Attribute("jitter", "ms", default=0)),
    # Toxiproxy takes a rate of 0 as "no limit": it would be in force and do nothing.
    "bandwidth": (Attribute("rate", "KB/s", minimum=1, maximum=LARGEST),),
    "slow_close": (Attribute("delay", "ms"),),
    # 0: data stops and the connection stays open until the toxic is removed.
    "timeout": (Attribute("timeout", "ms"),),
    # While it waits to reset, Toxiproxy 2.12 does not listen to its API: removing it, and
    # then every other call, hangs until the wait is over.
    "reset_peer": (Attribute("timeout", "ms", maximum=10_000, default=0),),
    "slicer": (
        Attribute("average_size", "bytes", minimum=1, maximum=LARGEST),
        Attribute("size_variation", "bytes", maximum=LARGEST, default=0),
        Attribute("delay", "us", maximum=HOUR_MS * 1000, default=0),
    ),
    "limit_data": (Attribute("bytes", "bytes", maximum=LARGEST),),
}


class Toxic(Record, forbid_unknown_fields=False):
    """One toxic as Toxiproxy reports it. ``attributes`` are in Toxiproxy's units, ordered by name.
    ``toxicity`` is the share of *connections* (not of requests) it applies to."""

    name: _Text
    type: _Text
    stream: Stream
    toxicity: Annotated[float, Meta(ge=0, le=1)]
    attributes: Mapping[str, Whole]

    def __post_init__(self) -> None:
        force_setattr(self, "attributes", dict(sorted(self.attributes.items())))

    @property
    def added_latency_ms(self) -> float | None:
        """Mean milliseconds this toxic adds to a small message; None where that depends on
        the traffic (bandwidth, slicer), where the message is lost, or where the toxic is on some
        connections only: a closed load gets the sum of what each connection can have (N / mean R
        is less), and the quick ones answer more often.

        A latency toxic waits L + U(-J, J), never less than 0, once per message and
        direction. Its mean is L for J <= L, else the mean of the uniform distribution cut
        at zero, (L + J)^2 / 4J.
        """
        if self.type == "slow_close" or self.toxicity == 0:
            return 0.0
        if self.type != "latency" or self.toxicity < 1:
            return None
        # Toxiproxy leaves out what is 0, its own default.
        latency, jitter = (self.attributes.get(name, 0) for name in ("latency", "jitter"))
        if min(latency, jitter) < 0:  # Its API takes any number.
            return None
        return float(latency) if jitter <= latency else (latency + jitter) ** 2 / (4 * jitter)


# A toxic, or None without one; of a WHOLE_PROXY True if it is up.
ToxicValue = Toxic | bool | None


class Proxy(Record, forbid_unknown_fields=False):
    """One proxy and the toxics in force on it; ``enabled`` False refuses connections."""

    name: str
    listen: str
    upstream: str
    enabled: bool
    toxics: tuple[Toxic, ...] = ()

    @property
    def values(self) -> Mapping[str, ToxicValue]:
        return {WHOLE_PROXY: self.enabled, **{toxic.name: toxic for toxic in self.toxics}}

    def having(self, name: str, value: ToxicValue) -> "Proxy":
        if isinstance(value, bool):
            return replace(self, enabled=value)
        others = (toxic for toxic in self.toxics if toxic.name != name)
        toxics = (*others, value) if value else others
        return replace(self, toxics=tuple(sorted(toxics, key=lambda toxic: toxic.name)))


class ToxicsInForce(Record):
    """Every proxy with its toxics at one moment: what a trial records and a prediction uses."""

    proxies: tuple[Proxy, ...]

    @property
    def toxics(self) -> tuple[tuple[str, Toxic], ...]:
        """(proxy, toxic) of everything in force."""
        return tuple((proxy.name, toxic) for proxy in self.proxies for toxic in proxy.toxics)

    @property
    def added_latency_ms(self) -> float:
        """Mean milliseconds that the latency toxics of both streams add to a round trip."""
        return sum(toxic.added_latency_ms or 0.0 for _, toxic in self.toxics)

    @property
    def jittered(self) -> bool:
        """True if a latency toxic adds another time to each message."""
        return any(t.type == "latency" and t.attributes.get("jitter") for _, t in self.toxics)

    @property
    def unpredicted(self) -> tuple[str, ...]:
        """The toxics that change latency or answers in a way that `added_latency_ms` leaves out:
        ``proxy/toxic``, or ``proxy`` where the proxy is down."""
        down = [proxy.name for proxy in self.proxies if not proxy.enabled]
        other = [f"{p}/{t.name}" for p, t in self.toxics if t.added_latency_ms is None]
        return tuple(down + other)

    def proxy(self, name: str) -> Proxy:
        """Raises LabUnreachable naming those there are."""
        for proxy in self.proxies:
            if proxy.name == name:
                return proxy
        known = ", ".join(proxy.name for proxy in self.proxies) or "none"
        raise LabUnreachable(f"proxy {name!r} does not exist: toxiproxy has {known}")


def ordered(proxies: Iterable[Proxy]) -> ToxicsInForce:
    """Proxies and their toxics by name."""
    return ToxicsInForce(
        tuple(
            replace(proxy, toxics=tuple(sorted(proxy.toxics, key=lambda toxic: toxic.name)))
            for proxy in sorted(proxies, key=lambda proxy: proxy.name)
        )
    )


class ToxicRequest(Record):
    """Have ``value`` under the name on the proxy, whatever is there. Without one a toxic in force
    is changed as ``words`` say, which leave the rest; without words it is removed."""

    proxy: str
    name: str
    value: ToxicValue = None
    words: Mapping[str, str] = {}

    @property
    def item(self) -> tuple[str, str]:
        return self.proxy, self.name

    def value_on(self, proxy: Proxy) -> ToxicValue:
        """The value after it. Raises LabUnreachable for a toxic that is not in force, WordError
        for a word its type does not have."""
        if self.value is not None:
            return self.value
        present = proxy.values.get(self.name)
        if not isinstance(present, Toxic):
            known = ", ".join(toxic.name for toxic in proxy.toxics) or "none"
            raise LabUnreachable(
                f"toxic {self.name!r} is not in force on {proxy.name}: in force are {known}"
            )
        if not self.words:
            return None
        words = {"TYPE": present.type, "NAME": present.name, "STREAM": present.stream}
        words |= {name.upper(): str(value) for name, value in present.attributes.items()}
        changed = _toxic({**words, **self.words})
        # One that is not given may have more digits than a word.
        given = "TOXICITY" in self.words
        return changed if given else replace(changed, toxicity=present.toxicity)


def applied(in_force: ToxicsInForce, request: ToxicRequest) -> ToxicsInForce:
    """The toxics in force after a request. Raises LabUnreachable, WordError."""
    before = in_force.proxy(request.proxy)
    after = before.having(request.name, request.value_on(before))
    return ToxicsInForce(tuple(after if each is before else each for each in in_force.proxies))


def parse_toxic(words: Mapping[str, str]) -> ToxicRequest:
    """The words of `toxic`. Raises WordError: given, allowed, where."""
    if "REMOVE" in words:
        return _removal(words)
    if "TYPE" not in words and "NAME" in words:
        return _change(words)
    if (kind := words.get("TYPE")) in (DOWN, UP):
        refuse_unknown_words(words, ("TYPE", "PROXY"), f"toxic TYPE={kind}")
        return ToxicRequest(_proxy(words, "toxic"), WHOLE_PROXY, kind == UP)
    toxic = _toxic(words)
    return ToxicRequest(_proxy(words, f"toxic TYPE={toxic.type}"), toxic.name, toxic)


def refuse_unknown_words(words: Mapping[str, str], allowed: Sequence[str], where: str) -> None:
    """Raises WordError."""
    for word, value in words.items():
        if word not in allowed:
            known = ", ".join(allowed) or "no words"
            raise WordError(f"{where}: unknown word {word}={value}; allowed: {known}")


def _removal(words: Mapping[str, str]) -> ToxicRequest:
    where = "toxic REMOVE=yes"
    refuse_unknown_words(words, ("NAME", "PROXY", "REMOVE"), where)
    if words["REMOVE"] != YES:
        raise _refused("toxic", f"REMOVE={words['REMOVE']}", YES)
    if "NAME" not in words:
        raise WordError(f"{where}: NAME is missing; give the toxic's name, as `toxics` shows it")
    return ToxicRequest(_proxy(words, where), _name(words, "NAME", "", where))


def _change(words: Mapping[str, str]) -> ToxicRequest:
    """The checks that need no toxic in force; the toxic's type checks the rest."""
    where = "toxic NAME= without TYPE"
    attributes = (attribute for every in TOXIC_TYPES.values() for attribute in every)
    named = tuple(dict.fromkeys(attribute.name.upper() for attribute in attributes))
    refuse_unknown_words(words, ("NAME", "PROXY", "STREAM", "TOXICITY", *named), where)
    change = {word: value for word, value in words.items() if word not in ("NAME", "PROXY")}
    if not change:
        raise WordError(f"{where}: nothing to change; give an attribute, TYPE=… or REMOVE={YES}")
    _stream(words, where)
    _toxicity(words, where)
    for word, value in change.items():
        if word in named and not _WHOLE.fullmatch(value):
            raise _refused(where, f"{word}={value}", "a whole number")
    return ToxicRequest(_proxy(words, where), _name(words, "NAME", "", where), words=change)


def _toxic(words: Mapping[str, str]) -> Toxic:
    kind = words.get("TYPE", "").replace("-", "_")
    if kind not in TOXIC_TYPES:
        given = f"TYPE={words['TYPE']}" if "TYPE" in words else "no TYPE"
        raise _refused("toxic", given, ", ".join((*TOXIC_TYPES, DOWN, UP)))
    attributes, where = TOXIC_TYPES[kind], f"toxic TYPE={kind}"
    names = (attribute.name.upper() for attribute in attributes)
    allowed = ("TYPE", "NAME", "PROXY", "STREAM", "TOXICITY", *names)
    refuse_unknown_words(words, allowed, where)
    values = {attribute.name: _number(words, attribute, where) for attribute in attributes}
    # Toxiproxy cuts at average +- variation: at or above the average a slice could be empty.
    if kind == "slicer" and values["size_variation"] >= values["average_size"]:
        least = f"less than AVERAGE_SIZE={values['average_size']}"
        raise _refused(where, f"SIZE_VARIATION={values['size_variation']}", least)
    name = _name(words, "NAME", kind, where)
    return Toxic(name, kind, _stream(words, where), _toxicity(words, where), values)


def _number(words: Mapping[str, str], attribute: Attribute, where: str) -> int:
    word = attribute.name.upper()
    if word not in words and attribute.default is not None:
        return attribute.default
    if word not in words:
        raise WordError(f"{where}: {word} is missing; allowed: {attribute.allowed}")
    number = int(words[word]) if _WHOLE.fullmatch(words[word]) else -1
    if not attribute.minimum <= number <= attribute.maximum:
        raise _refused(where, f"{word}={words[word]}", attribute.allowed)
    return number


def _stream(words: Mapping[str, str], where: str) -> Stream:
    given = words.get("STREAM", DEFAULT_STREAM)
    for stream in STREAMS:
        if stream == given:
            return stream
    raise _refused(where, f"STREAM={given}", ", ".join(STREAMS))


def _toxicity(words: Mapping[str, str], where: str) -> float:
    given = words.get("TOXICITY", "1")
    if not _SHARE.fullmatch(given):
        allowed = "0..1 with up to 6 digits after the point (share of connections)"
        raise _refused(where, f"TOXICITY={given}", allowed)
    return float(given)


def _proxy(words: Mapping[str, str], where: str) -> str:
    return _name(words, "PROXY", DEFAULT_PROXY, where)


def _name(words: Mapping[str, str], word: str, default: str, where: str) -> str:
    given = words.get(word, default)
    if not _NAME.fullmatch(given):
        raise _refused(where, f"{word}={given}", "up to 64 of A-Z a-z 0-9 _ . -")
    return given


def _refused(where: str, given: str, allowed: str) -> WordError:
    return WordError(f"{where}: {given} is not allowed; allowed: {allowed}")
