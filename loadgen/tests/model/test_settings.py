"""How a run is run again: the verb, its words, and the settings that its servers had."""

import copy
import re
from typing import Any

import pytest

from lab.kinds.registry import kind_of
from lab.model import Experiment, Snapshot, ToxicState
from lab.model.knobs import READ_BACK
from lab.report import markdown, settings, words
from lab.report.result import Result
from support.drawn_delay import SPREAD
from support.fakes import IDENTITY, SETTINGS, snapshot
from support.repo import REPO
from support.results import result
from support.runs import EXPERIMENT

USUAL = copy.replace(IDENTITY, jvm_flags=tuple(settings.JVM_FLAGS.split()))
BENCH = copy.replace(EXPERIMENT, words=("CONC=100",), question="", hypothesis="")
EXPLAIN = copy.replace(
    BENCH, kind="explain", servers=("a",), launches=0, words=("CONC=400", "SUSPECT=worker pool")
)
NEXT = copy.replace(EXPLAIN, words=("EXP=next-bottleneck",))


def server(model: str = "a", toxics: ToxicState | None = None, **changes: Any) -> Snapshot:
    return snapshot(
        identity=copy.replace(USUAL, model=model),
        settings={**SETTINGS, **changes},
        toxics=toxics or ToxicState(),
    )


def content(of: Experiment = BENCH, **servers: Snapshot) -> Result:
    return result(experiment=of, servers=servers or {"a": server()}, verb=kind_of(of).verb.name)


def again(of: Result) -> tuple[str | None, tuple[str, ...]]:
    changed = settings.changed(of.manifest)
    return words.command(of, changed.words), changed.others


def test_the_defaults_are_those_of_the_file() -> None:
    of_file = dict(re.findall(r"^(\w+)=(.*)$", (REPO / ".env").read_text(), re.MULTILINE))
    ours = {word: settings.text(default) for word, (_, default) in READ_BACK.items()}
    ours["SERVER_JVM_FLAGS"] = settings.JVM_FLAGS
    ours["SERVER_MEMORY"] = settings.SERVER_MEMORY
    ours |= {"SERVER_CPUS": "0", "SERVER_CPUSET": ""}
    ours["DOWNSTREAM_DELAY_MS"] = str(settings.DOWNSTREAM_DELAY_MS)
    assert ours == {name: of_file[name] for name in ours}


@pytest.mark.parametrize(
    ("of", "command"),
    [
        (BENCH, "make bench CONC=100"),
        (EXPERIMENT, "make run EXP=aa LAUNCHES=7"),
        (EXPLAIN, "make explain CONC=400 'SUSPECT=worker pool'"),
        (NEXT, "make run EXP=next-bottleneck"),
        (copy.replace(BENCH, words=()), None),
    ],
)
def test_the_command_has_its_verb(of: Experiment, command: str | None) -> None:
    assert again(content(of)) == (command, ())


FLAGS = ("--enable-preview", "-Xms40m", "-Xmx40m", "-Dsun.net.httpserver.nodelay=true",
         "-javaagent:/lab/jmx-exporter.jar=9404:/lab/jmx-exporter.yaml")  # fmt: skip
SMALL = copy.replace(
    server(), identity=copy.replace(IDENTITY, jvm_flags=FLAGS), downstream_delay_ms=50.0
)
DRAWN = copy.replace(server(), spread=SPREAD)
NO_POOL = server("event-loop", pool_size=None, loops=1, block_the_loop=True)
FOREIGN = snapshot(identity=None, settings={"url": "http://a:80"}, toxics=ToxicState(("x",)))


def limited(**changes: Any) -> Snapshot:
    """A server whose container has the usual limits but for these."""
    usual = {"cpu_quota": None, "memory_limit_bytes": 2**31, "cpuset": "0-1"}
    return server(**{**usual, **changes})


@pytest.mark.parametrize(
    ("servers", "more"),
    [
        ([SMALL], " 'SERVER_JVM_FLAGS=-Xms40m -Xmx40m' DOWNSTREAM_DELAY_MS=50"),
        ([DRAWN], " DOWNSTREAM_DELAY_MS=lognormal:mean=200,p99=800"),
        # A model that has no such setting is not asked for it.
        ([server(pool_size=20, backlog=4096), NO_POOL], " SERVER_POOL_SIZE=20 BLOCK_THE_LOOP=true"),
        # As many loops as a model has by itself are no setting.
        ([server("event-loop", loops=1), server("netty", loops=2)], ""),
        ([server("event-loop", loops=2), server("netty", loops=2)], " LOOPS=2"),
        ([limited()], ""),
        ([limited(cpu_quota=1.5)], " SERVER_CPUS=1.5"),
        ([limited(memory_limit_bytes=3 * 2**29)], " SERVER_MEMORY=1536m"),
        ([limited(memory_limit_bytes=None)], " SERVER_MEMORY=0"),
        ([limited(cpuset="1")], " SERVER_CPUSET=1"),
        ([limited(cpuset="0,3")], ""),
        ([limited(cpuset=None)], ""),
        # Of a service that is not the lab's nothing is known.
        ([FOREIGN], ""),
    ],
)
def test_settings_of_all_are_words(servers: list[Snapshot], more: str) -> None:
    of = content(**dict(zip("ab", servers, strict=False)))
    assert again(of) == (f"make bench CONC=100{more}", ())


def test_a_set_that_the_lab_chose_is_no_setting() -> None:
    of = content(a=limited(cpuset="4-7"))
    host = {**of.manifest.host, "cores": 8}
    chosen = {**host, "cpu_sets": "auto"}
    for changes, more in (
        ({"host": chosen}, ""),
        ({"host": host}, " SERVER_CPUSET=4-7"),
        ({"host": chosen, "settings": ("NOFILE=300",)}, " NOFILE=300"),
    ):
        seen = copy.replace(of, manifest=copy.replace(of.manifest, **changes))
        assert again(seen) == (f"make bench CONC=100{more}", ())


def test_what_no_word_brings_back_is_said() -> None:
    toxic = ToxicState(("downstream/slow latency latency=500",), 500.0)
    of = content(
        a=server(pool_size=20, virtual_thread_parallelism=1, toxics=toxic),
        b=server(pool_size=200, virtual_thread_parallelism=2, toxics=toxic),
    )
    command, others = again(of)
    assert command == "make bench CONC=100"
    assert others == (
        "SERVER_POOL_SIZE=20 (a)",
        "virtual_thread_parallelism=1 (a)",
        "the toxic downstream/slow latency latency=500",
    )
    assert "the command does not restore them: SERVER_POOL_SIZE=20 (a);" in markdown.text(of)


@pytest.mark.parametrize(
    ("of", "changes", "question"),
    [
        (BENCH, {"servers": ("a",)}, "What does a do at 100 connections?"),
        (BENCH, {"concurrencies": (1,)}, "What do a, b do at 1 connection?"),
        (BENCH, {"concurrencies": (1, 5000)}, "What do a, b do at 1, 5,000 connections?"),
        (BENCH, {"question": "\nWhy?\n"}, "Why?"),
    ],
)
def test_a_question_that_nobody_wrote(
    of: Experiment, changes: dict[str, Any], question: str
) -> None:
    asked = copy.replace(of, **changes)
    assert words.question(content(asked)) == question
