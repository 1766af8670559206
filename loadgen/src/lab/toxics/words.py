"""The words of `make toxic …` and `make toxics-reset …` as a request, checked before anything
is changed. Pure; every refusal is a WordError of one line: given, allowed, where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lab.errors import WordError
from lab.toxics.model import (
    DEFAULT_PROXY,
    DEFAULT_STREAM,
    STREAMS,
    TOXIC_TYPES,
    Attribute,
    Toxic,
)

# Not a toxic in Toxiproxy but the proxy itself refusing connections; `toxics-reset` ends it.
DOWN = "down"
COMMON_WORDS = ("TYPE", "NAME", "PROXY", "STREAM", "TOXICITY")
# Names become path segments of the API and label values of the metrics.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class ToxicRequest:
    """What `make toxic` asks for: ``toxic`` on ``proxy``; None means the proxy down."""

    proxy: str
    toxic: Toxic | None


@dataclass(frozen=True, slots=True)
class ResetRequest:
    """What `make toxics-reset` asks for: one toxic of ``proxy``; ``name`` None means all
    toxics of all proxies."""

    proxy: str
    name: str | None


def parse_toxic(words: Mapping[str, str]) -> ToxicRequest:
    """The words of `toxic`. Raises WordError."""
    toxic_type = words.get("TYPE", "").replace("-", "_")
    if toxic_type not in (*TOXIC_TYPES, DOWN):
        given = f"TYPE={words['TYPE']}" if "TYPE" in words else "no TYPE"
        raise _refused("toxic", given, ", ".join((*TOXIC_TYPES, DOWN)))
    if toxic_type == DOWN:
        _only(words, ("TYPE", "PROXY"), f"toxic TYPE={DOWN}")
        return ToxicRequest(_name(words, "PROXY", DEFAULT_PROXY, "toxic"), None)
    attributes = TOXIC_TYPES[toxic_type]
    where = f"toxic TYPE={toxic_type}"
    _only(words, (*COMMON_WORDS, *(a.name.upper() for a in attributes)), where)
    values = tuple((a.name, _whole_number(words, a, where)) for a in attributes)
    if toxic_type == "slicer":
        _check_slicer(dict(values), where)
    stream = words.get("STREAM", DEFAULT_STREAM)
    if stream not in STREAMS:
        raise _refused(where, f"STREAM={stream}", ", ".join(STREAMS))
    toxic = Toxic(
        name=_name(words, "NAME", toxic_type, where),
        type=toxic_type,
        stream=stream,
        toxicity=_share(words, where),
        attributes=values,
    )
    return ToxicRequest(_name(words, "PROXY", DEFAULT_PROXY, where), toxic)


def parse_reset(words: Mapping[str, str]) -> ResetRequest:
    """The words of `toxics-reset`. Raises WordError."""
    _only(words, ("NAME", "PROXY"), "toxics-reset")
    if "PROXY" in words and "NAME" not in words:
        raise _refused("toxics-reset", "PROXY without NAME", "no word (all), or NAME=… [PROXY=…]")
    name = _name(words, "NAME", "", "toxics-reset") if "NAME" in words else None
    return ResetRequest(_name(words, "PROXY", DEFAULT_PROXY, "toxics-reset"), name)


def parse_show(words: Mapping[str, str]) -> None:
    """The words of `toxics`: there are none. Raises WordError."""
    _only(words, (), "toxics")


def _refused(where: str, given: str, allowed: str) -> WordError:
    return WordError(f"{where}: {given} is not allowed; allowed: {allowed}")


def _only(words: Mapping[str, str], allowed: Iterable[str], where: str) -> None:
    allowed = tuple(allowed)
    unknown = [word for word in words if word not in allowed]
    if unknown:
        raise WordError(
            f"{where}: unknown word {unknown[0]}={words[unknown[0]]}; "
            f"allowed: {', '.join(allowed) or 'no words'}"
        )


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


def _share(words: Mapping[str, str], where: str) -> float:
    given = words.get("TOXICITY", "1")
    if re.fullmatch(r"0|1|[01]?\.[0-9]{1,9}", given) and float(given) <= 1:
        return float(given)
    raise _refused(where, f"TOXICITY={given}", "0..1 (share of connections)")


def _name(words: Mapping[str, str], word: str, default: str, where: str) -> str:
    given = words.get(word, default)
    if NAME.fullmatch(given):
        return given
    raise _refused(where, f"{word}={given}", "up to 64 of A-Z a-z 0-9 _ . -")
