"""The words of the command line as an Experiment, or one line saying what is wrong."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from lab.errors import LabUnreachable, WordError
from lab.routes import Route, RouteCall, parse
from lab.types import MODES, Experiment, Mode

T = TypeVar("T")

BENCH_WORDS = (
    "CONC", "SERVER", "ROUTE", "MODE", "RATE", "DURATION", "WARMUP", "ENGINE", "NAME",
)  # fmt: skip
ENGINES = ("wrk2", "oha", "wrk")
DEFAULT_ROUTE = "/downstream"
DEFAULT_DURATION_S = 15
MAX_DURATION_S = 24 * 3600
MAX_RATE_RPS = 10_000_000
# Descriptors a server needs besides those of requests: jars, listeners, management, probe.
SPARE_DESCRIPTORS = 1000
_DURATION = re.compile(r"(\d{1,6})(s|m|h)?")
_SECONDS = {"s": 1, None: 1, "m": 60, "h": 3600}
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_SERVER = re.compile(r"[a-z0-9][a-z0-9.-]*")


def read_words(argv: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The user's KEY=VALUE words: of the command line, and of LAB_WORDS (make's words).

    Words of LAB_WORDS named in LAB_SETTING_NAMES are settings of the lab, not of a verb, and
    are left out. A word of the command line wins. Raises WordError.
    """
    settings = set(environ.get("LAB_SETTING_NAMES", "").split())
    try:
        from_make = shlex.split(environ.get("LAB_WORDS", ""))
    except ValueError as failure:
        raise WordError(f"cannot read the words {environ['LAB_WORDS']!r}: {failure}") from None
    words: dict[str, str] = {}
    for word in from_make:
        key, value = _split(word)
        if key not in settings:
            words[key] = value
    words.update(_split(word) for word in argv)
    return words


def _split(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
        raise WordError(f"'{word}' is not a word like CONC=2000")
    return key, value


def read_servers(path: Path) -> tuple[str, ...]:
    """The server models of Prometheus' target list (file_sd), in its order."""
    try:
        groups = json.loads(path.read_text(encoding="utf-8"))
        names = tuple(str(target) for group in groups for target in group["targets"])
    except (OSError, ValueError, KeyError, TypeError) as failure:
        raise LabUnreachable(f"cannot read the list of servers {path}: {failure}") from None
    if not names or any(not _SERVER.fullmatch(name) for name in names):
        raise LabUnreachable(f"{path}: targets must be one or more service names, not {names}")
    return names


def bench_experiment(
    words: Mapping[str, str], servers: Sequence[str], file_limit: int
) -> Experiment:
    """The words of `bench` as an Experiment.

    `servers` are those there are; `file_limit` is how many files one process may hold open
    (RLIMIT_NOFILE), which bounds the concurrency. Raises WordError.
    """
    refuse_unknown(words, BENCH_WORDS, "bench")
    if "CONC" not in words:
        raise WordError("bench: CONC is missing; give the number of connections, as CONC=2000")
    path = words.get("ROUTE", DEFAULT_ROUTE)
    call = _route(path)
    engine = _one_of(words, "ENGINE", ENGINES) if "ENGINE" in words else None
    mode = _one_of(words, "MODE", (*MODES, "both")) if "MODE" in words else "both"
    if engine == "wrk" and mode != "closed":
        raise WordError(
            f"bench: ENGINE=wrk with MODE={mode} is not allowed: wrk only does MODE=closed"
        )
    # Closed first: it leaves a JVM warm, and an open load on a cold one starts with a backlog.
    modes: tuple[Mode, ...] = tuple(m for m in reversed(MODES) if mode in (m, "both"))
    rate = _rate(words)
    if rate is not None and mode == "closed":
        raise WordError("bench: RATE with MODE=closed is not allowed: a closed load has no rate")
    if mode == "open" and rate is None and call.wait_ms == 0:
        raise no_auto_rate(path)
    return Experiment(
        name=_name(words),
        servers=_each(words, "SERVER", lambda one: _server(one, servers)) or tuple(servers),
        route=path,
        concurrencies=_each(words, "CONC", lambda one: _concurrency(one, call.route, file_limit)),
        modes=modes,
        rate_rps=rate,
        duration_s=_seconds(words, "DURATION", DEFAULT_DURATION_S, 1),
        warmup_s=_seconds(words, "WARMUP", -1, 0) if "WARMUP" in words else None,
        engine=engine,
        words=tuple(f"{key}={value}" for key, value in words.items()),
    )


def no_auto_rate(path: str) -> WordError:
    """Why there is no RATE=auto on a path without a wait, and what to do."""
    return WordError(
        f"bench: RATE=auto is a share of connections / wait, and {path} does not wait now; "
        "allowed: RATE=n requests per second, or MODE=closed"
    )


def refuse_unknown(words: Iterable[str], allowed: Sequence[str], verb: str) -> None:
    """Raises WordError naming the first word that the verb does not know."""
    for word in words:
        if word not in allowed:
            known = ", ".join(allowed) if allowed else "none"
            raise WordError(f"{verb}: unknown word {word}; allowed: {known}")


def _route(path: str) -> RouteCall:
    try:
        return parse(path)
    except ValueError as failure:
        raise WordError(f"bench: ROUTE={failure}") from None


def max_concurrency(route: Route, file_limit: int) -> int:
    """How many connections a server can hold: one descriptor in, and one more per request
    where the route opens a connection or a file."""
    return (file_limit - SPARE_DESCRIPTORS) // route.descriptors


def _each(words: Mapping[str, str], key: str, parse: Callable[[str], T]) -> tuple[T, ...]:
    given = words.get(key)
    if given is None:
        return ()
    values = tuple(parse(one) for one in given.split(","))
    if len(set(values)) != len(values):
        raise WordError(f"bench: {key}={given} names the same twice")
    return values


def _server(given: str, servers: Sequence[str]) -> str:
    if given not in servers:
        raise WordError(
            f"bench: SERVER={given} is not a server of the lab; allowed: {', '.join(servers)}"
        )
    return given


def _concurrency(given: str, route: Route, file_limit: int) -> int:
    most = max_concurrency(route, file_limit)
    if most < 1:
        raise WordError(
            f"bench: only {file_limit} open files per process are allowed here; raise NOFILE"
        )
    if not re.fullmatch(r"[1-9]\d{0,6}", given):
        raise WordError(f"bench: CONC={given} is not a number of connections; allowed: 1..{most}")
    if int(given) > most:
        each = "one" if route.descriptors == 1 else f"two, as each opens a {route.opens},"
        raise WordError(
            f"bench: CONC={given} is more than this machine holds; allowed: 1..{most} on "
            f"{route.path} ({file_limit} open files per process, {each} per connection)"
        )
    return int(given)


def _rate(words: Mapping[str, str]) -> int | None:
    given = words.get("RATE", "auto")
    if given == "auto":
        return None
    if not re.fullmatch(r"[1-9]\d{0,7}", given) or int(given) > MAX_RATE_RPS:
        raise WordError(
            f"bench: RATE={given} is not a rate; allowed: auto, or 1..{MAX_RATE_RPS} requests "
            "per second"
        )
    return int(given)


def _seconds(words: Mapping[str, str], key: str, default: int, least: int) -> int:
    given = words.get(key)
    if given is None:
        return default
    found = _DURATION.fullmatch(given)
    seconds = int(found[1]) * _SECONDS[found[2]] if found else -1
    if not least <= seconds <= MAX_DURATION_S:
        raise WordError(
            f"bench: {key}={given} is not a duration; allowed: {least}s..24h in whole seconds, "
            "minutes or hours, as 15s or 2m"
        )
    return seconds


def _one_of(words: Mapping[str, str], key: str, allowed: Sequence[str]) -> str:
    if words[key] not in allowed:
        raise WordError(f"bench: {key}={words[key]} is not allowed; allowed: {', '.join(allowed)}")
    return words[key]


def _name(words: Mapping[str, str]) -> str:
    given = words.get("NAME", "bench")
    if not _NAME.fullmatch(given):
        raise WordError(
            f"bench: NAME={given} is not allowed; allowed: up to 40 of a-z, 0-9 and '-', "
            "starting with a letter or digit"
        )
    return given
