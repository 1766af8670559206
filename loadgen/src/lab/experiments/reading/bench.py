"""The words of `bench`, and of `explain`, as an Experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lab.errors import WordError
from lab.experiments.reading import kinds, rules, target
from lab.experiments.reading.load import read_load
from lab.experiments.reading.settings import Given, Head, Settings
from lab.experiments.reading.words import as_given, refuse_unknown
from lab.model import Experiment

# Each word, and the setting that it is.
LOAD_WORDS = {
    "CONC": "load.concurrency",
    "SERVER": "load.servers",
    "ROUTE": "load.routes",
    "MODE": "load.modes",
    "RATE": "load.rate",
    "DURATION": "load.duration",
    "WARMUP": "load.warmup",
    "ENGINE": "load.engines",
    "LAUNCHES": "repeat.launches",
    "NAME": "name",
}
EXPLAIN_WORDS = {
    "PAIRS": "explain.pairs",
    "STEPS": "explain.steps",
    "SUSPECT": "explain.suspect",
}
# A step takes many trials, and each is compared with its neighbours: they can be short.
EXPLAIN_DURATION = Given("explain: DURATION", ("5s",), by_user=False)
BENCH_WORDS = {**LOAD_WORDS, target.WORD: target.KEY}
LISTS = frozenset(("CONC", "SERVER", "ENGINE", "CASE"))


def bench_experiment(
    words: Mapping[str, str], servers: Sequence[str], file_limit: int
) -> Experiment:
    """The words of `bench` as an Experiment.

    `servers` are those there are; `file_limit` is how many files one process may hold open
    (RLIMIT_NOFILE), which bounds the concurrency. Raises WordError.
    """
    refuse_unknown(words, tuple(BENCH_WORDS), "bench")
    target.refuse_beside(words, "bench")
    if "CONC" not in words:
        raise WordError("bench: CONC is missing; give the number of connections, as CONC=2000")
    settings = Settings("bench", given_words(words, BENCH_WORDS, "bench"))
    of = target.given_target(settings)
    load = read_load(settings, servers, file_limit, target=of)
    return Experiment(
        name=settings.one("name", rules.name, "bench"),
        servers=load.servers,
        routes=load.routes,
        concurrencies=load.concurrencies,
        modes=load.modes,
        rate_rps=load.rate_rps,
        duration_s=load.duration_s,
        warmup_s=load.warmup_s,
        engines=load.engines,
        words=as_given(words),
        launches=load.launches,
        target=of.url if of else None,
    )


def explain_experiment(
    words: Mapping[str, str], servers: Sequence[str], file_limit: int
) -> Experiment:
    """The words of `explain` as an Experiment; arguments as of bench_experiment. Raises
    WordError."""
    known = {word: key for word, key in LOAD_WORDS.items() if word != "LAUNCHES"} | EXPLAIN_WORDS
    target.refuse(words, "explain")
    refuse_unknown(words, tuple(known), "explain")
    if "CONC" not in words:
        raise WordError("explain: CONC is missing; give the number of connections, as CONC=5000")
    given = {"load.duration": EXPLAIN_DURATION, **given_words(words, known, "explain")}
    settings = Settings("explain", given)
    head = Head(settings.one("name", rules.name, "explain"), "", "", as_given(words))
    return kinds.explanation(settings, head, servers, file_limit)[0]


def given_words(
    words: Mapping[str, str], settings: Mapping[str, str], verb: str
) -> dict[str, Given]:
    """The words as settings; `settings` says which word is which."""
    return {
        settings[word]: Given(
            f"{verb}: {word}", tuple(value.split(",")) if word in LISTS else (value,), True
        )
        for word, value in words.items()
    }
