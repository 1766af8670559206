"""The words of `make toxic …` as a request, checked before anything is changed, and its effect.
Pure; every refusal is a WordError of one line: given, allowed, where.

| words                              | request                                              |
|------------------------------------|------------------------------------------------------|
| TYPE=latency LATENCY=300 [NAME= …] | a toxic as described, whatever had its name          |
| NAME=latency LATENCY=100           | change one in force, only what is given              |
| NAME=latency REMOVE=yes            | remove it                                            |
| TYPE=down, TYPE=up                 | the proxy refuses connections, or takes them         |
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import replace
from dataclasses import dataclass, field

from lab.errors import LabUnreachable, WordError
from lab.model.toxics import (
    DEFAULT_PROXY,
    DEFAULT_STREAM,
    STREAMS,
    TOXIC_TYPES,
    WHOLE_PROXY,
    Attribute,
    Proxy,
    Toxic,
    ToxicsInForce,
    ToxicValue,
)

# Not toxics in Toxiproxy but the proxy itself, refusing connections or taking them.
DOWN, UP = "down", "up"
YES = "yes"
COMMON_WORDS = ("TYPE", "NAME", "PROXY", "STREAM", "TOXICITY")
# Names become path segments of the API and label values of the metrics.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class ToxicRequest:
    """Have ``value`` under the name on the proxy, whatever is there. Without one a toxic in force
    is changed as ``words`` say, which leave the rest; without words it is removed."""

    proxy: str
    name: str
    value: ToxicValue = None
    words: Mapping[str, str] = field(default_factory=dict)

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
        changed = parse_toxic({**words, **self.words}).value
        assert isinstance(changed, Toxic)  # noqa: S101 - its type is one of a toxic
        # One that is not given may have more digits than a word.
        given = "TOXICITY" in self.words
        return changed if given else replace(changed, toxicity=present.toxicity)


def applied(in_force: ToxicsInForce, request: ToxicRequest) -> ToxicsInForce:
    """The toxics in force after a request. Raises LabUnreachable, WordError."""
    before = in_force.proxy(request.proxy)
    after = before.having(request.name, request.value_on(before))
    return ToxicsInForce(tuple(after if each is before else each for each in in_force.proxies))


def parse_toxic(words: Mapping[str, str]) -> ToxicRequest:
    """The words of `toxic`. Raises WordError."""
    if "REMOVE" in words:
        return _removal(words)
    if "TYPE" not in words and "NAME" in words:
        return _change(words)
    toxic_type = words.get("TYPE", "").replace("-", "_")
    if toxic_type not in (*TOXIC_TYPES, DOWN, UP):
        given = f"TYPE={words['TYPE']}" if "TYPE" in words else "no TYPE"
        raise _refused("toxic", given, ", ".join((*TOXIC_TYPES, DOWN, UP)))
    if toxic_type in (DOWN, UP):
        _only(words, ("TYPE", "PROXY"), f"toxic TYPE={toxic_type}")
        return ToxicRequest(_proxy(words, "toxic"), WHOLE_PROXY, toxic_type == UP)
    attributes = TOXIC_TYPES[toxic_type]
    where = f"toxic TYPE={toxic_type}"
    _only(words, (*COMMON_WORDS, *(a.name.upper() for a in attributes)), where)
    values = {a.name: _whole_number(words, a, where) for a in attributes}
    if toxic_type == "slicer":
        _check_slicer(values, where)
    toxic = Toxic(
        name=_name(words, "NAME", toxic_type, where),
        type=toxic_type,
        stream=_stream(words, where),
        toxicity=_share(words, where),
        attributes=values,
    )
    return ToxicRequest(_proxy(words, where), toxic.name, toxic)


def parse_none(words: Mapping[str, str], verb: str) -> None:
    """The words of `toxics` and `toxics-reset`: there are none. Raises WordError."""
    _only(words, (), verb)


def _removal(words: Mapping[str, str]) -> ToxicRequest:
    where = "toxic REMOVE=yes"
    _only(words, ("NAME", "PROXY", "REMOVE"), where)
    if words["REMOVE"] != YES:
        raise _refused("toxic", f"REMOVE={words['REMOVE']}", YES)
    if "NAME" not in words:
        raise WordError(f"{where}: NAME is missing; give the toxic's name, as `toxics` shows it")
    return ToxicRequest(_proxy(words, where), _name(words, "NAME", "", where))


def _change(words: Mapping[str, str]) -> ToxicRequest:
    """The checks that need no toxic in force; the toxic's type checks the rest."""
    where = "toxic NAME= without TYPE"
    named = {a.name.upper(): a for attributes in TOXIC_TYPES.values() for a in attributes}
    _only(words, ("NAME", "PROXY", "STREAM", "TOXICITY", *named), where)
    change = {word: value for word, value in words.items() if word not in ("NAME", "PROXY")}
    if not change:
        raise WordError(f"{where}: nothing to change; give an attribute, TYPE=… or REMOVE={YES}")
    _stream(words, where)
    _share(words, where)
    for word, value in change.items():
        if word in named and not re.fullmatch(r"[0-9]{1,15}", value):
            raise _refused(where, f"{word}={value}", "a whole number")
    return ToxicRequest(_proxy(words, where), _name(words, "NAME", "", where), words=change)


def _refused(where: str, given: str, allowed: str) -> WordError:
    return WordError(f"{where}: {given} is not allowed; allowed: {allowed}")


def _only(words: Mapping[str, str], allowed: Sequence[str], where: str) -> None:
    for word, value in words.items():
        if word not in allowed:
            known = ", ".join(allowed) or "no words"
            raise WordError(f"{where}: unknown word {word}={value}; allowed: {known}")


def _whole_number(words: Mapping[str, str], attribute: Attribute, where: str) -> int:
    word = attribute.name.upper()
    given = words.get(word)
    if given is None:
        if attribute.default is None:
            raise WordError(f"{where}: {word} is missing; allowed: {attribute.allowed}")
        return attribute.default
    if re.fullmatch(r"[0-9]{1,15}", given):
        number = int(given)
        if attribute.minimum <= number <= attribute.maximum:
            return number
    raise _refused(where, f"{word}={given}", attribute.allowed)


def _check_slicer(values: Mapping[str, int], where: str) -> None:
    # Toxiproxy cuts at average +- variation: at or above the average a slice could be empty.
    average, variation = values["average_size"], values["size_variation"]
    if variation >= average:
        raise _refused(where, f"SIZE_VARIATION={variation}", f"less than AVERAGE_SIZE={average}")


def _stream(words: Mapping[str, str], where: str) -> str:
    stream = words.get("STREAM", DEFAULT_STREAM)
    if stream not in STREAMS:
        raise _refused(where, f"STREAM={stream}", ", ".join(STREAMS))
    return stream


def _share(words: Mapping[str, str], where: str) -> float:
    given = words.get("TOXICITY", "1")
    # Toxiproxy keeps a float32: more digits would read back as other ones.
    if re.fullmatch(r"0|1|[01]?\.[0-9]{1,6}", given) and float(given) <= 1:
        return float(given)
    allowed = "0..1 with up to 6 digits after the point (share of connections)"
    raise _refused(where, f"TOXICITY={given}", allowed)


def _proxy(words: Mapping[str, str], where: str) -> str:
    return _name(words, "PROXY", DEFAULT_PROXY, where)


def _name(words: Mapping[str, str], word: str, default: str, where: str) -> str:
    given = words.get(word, default)
    if NAME.fullmatch(given):
        return given
    raise _refused(where, f"{word}={given}", "up to 64 of A-Z a-z 0-9 _ . -")
