"""Whatever the words, the files and the environment of a user are, a verb ends in one line."""

import contextlib
import io
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from lab.cli import VERBS, do
from support.repo import REPO

# Right words of each kind, so that what is beside them is read, too.
RIGHT = {
    "CONC": ("10", "50,200"),
    "SERVER": ("fixed-pool",),
    "ROUTE": ("/block?wait_ms=5",),
    "MODE": ("open", "closed"),
    "RATE": ("100",),
    "TARGET": ("http://my-service:8080/x", "example"),
    "RUN": ("latest",),
    "A": ("latest",),
    "B": ("latest",),
    "TYPE": ("latency", "down", "bandwidth"),
    "LATENCY": ("300",),
    "OBJECTIVE": ("p99<500ms,errors<1%",),
}
WRONG = (
    *("", " ", "\n", ",", ",,", "10,", "0", "-1", "-0", "+1", "1e9", "1e400", "nan", "inf", "0x10"),
    *("1_000", "٣", "９", "²", ".5", "5.", "9" * 5_000, "a" * 300, "..", "/etc/passwd", "\x00"),
    *("a\x00b", "\x1b]52;c;YQ==\x07", "\x9b2J", "\u202e", "\udcff", "\ud800", "é", "İ", "%zz"),
    *("%s", "{0}", "${X}", "$(x)", "`x`", "'", '"', "\\", "[", "[a", "*", "**", "?", "(", "<1"),
    *("p99<", "p99<nan", "p99<1e400s", "errors<200%", "p1e9<1s", ":", "latest:", ":a", "a:b:c"),
    *("0s", "1d", "999999h", "1.5s", "AUTO", "http://", "http://[", "lab/x", "lab/x:", "=", "-"),
    *("lab/x@sha256:0", "../latest", "latest/", "latest,latest", "worker pool,server CPU"),
)
# As TOML and JSON.
VALUES = (
    *("nan", "-inf", "-1", "1" * 5_000, "1979-05-27", "07:32:00", "true", "[]", "{}", "[[]]", '""'),
    *('"\\u0000"', '"\\u001b]52;c"', '"http://my..service:8080"', '"/a%zz"', "[{}]", "{a=1}"),
    *('"1e400"', '["a",1]', '"é"', f"{'[' * 3_000}{']' * 3_000}"),
)
ENVIRONMENT = ("COLUMNS", "LAB_CPUSET", "LAB_EXECUTORS_URL", "LAB_PROFILES")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a lab: a verb that measures ends where it would ask for one."""
    (tmp_path / "servers").mkdir()
    servers = [{"targets": ["fixed-pool", "virtual-threads"]}]
    (tmp_path / "servers/core.json").write_text(json.dumps(servers))
    (tmp_path / "results/20260131T120000Z-bench").mkdir(parents=True)
    (tmp_path / "results/latest").symlink_to("20260131T120000Z-bench")
    shutil.copytree(REPO / "experiments", tmp_path / "experiments")
    shutil.copytree(REPO / "subjects", tmp_path / "subjects")
    for name in ("verbs.run", "verbs.resume", "gate.run"):
        monkeypatch.setattr(f"lab.app.{name}", lambda *_, **__: 0)
    for module in ("verbs", "gate"):
        monkeypatch.setattr(f"lab.app.{module}.open_lab", lambda _: contextlib.nullcontext())
    # Nine seconds each time.
    monkeypatch.setattr("lab.app.ref.ref_lines", lambda _: iter(()))
    return tmp_path


def ended(argv: list[str], environ: dict[str, str]) -> int:
    """How the verb ended; where not well, with one line."""
    # As those of a process: what is not of UTF-8 cannot be written to them.
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = do(argv, environ)
    err.seek(0)
    said = err.read()
    assert (said == "") == (code == 0), (argv, environ, said)
    assert not said or (said.startswith("lab: ") and said[:-1].isprintable()), (argv, environ, said)
    assert len(said) < 5_000
    return code


def words_of(verb: str, environ: dict[str, str]) -> list[str]:
    err = io.StringIO()
    with contextlib.redirect_stderr(err):
        do(["plan", verb, "NO_SUCH_WORD=1"], environ)
    return re.findall(r"\b[A-Z]+\b", err.getvalue().rpartition("allowed:")[2])


def drawn(random: Random, known: list[str]) -> Iterator[str]:
    for key in random.sample(known, min(len(known), random.choice([0, 1, 1, 2, 3]))):
        right = RIGHT.get(key)
        values = right if right and random.random() < 0.5 else WRONG
        yield f"{key}={random.choice(values)}"


def test_no_words_of_a_verb_end_in_a_traceback(home: Path) -> None:
    random, environ, codes = Random(49), {"LAB_HOME": str(home), "LAB_LIMITS": ""}, set()
    verbs = sorted(VERBS.keys() - {"agent", "doctor", "host-facts", "hosts", "stack"})
    toxic = ["NAME", "TYPE", "LATENCY", "TOXICITY", "STREAM", "REMOVE", "RATE", "TIMEOUT"]
    known = {verb: words_of(verb, environ) for verb in verbs if not verb.startswith("tox")}
    for _ in range(1_000):
        verb = random.choice(verbs)
        words = [*drawn(random, known.get(verb, toxic))]
        if verb == "run" and random.random() < 0.9:
            words += [f"EXP={random.choice(['sweep', 'capacity', 'spike', 'bottlenecks'])}"]
        elif verb in ("bench", "explain") and random.random() < 0.8:
            words = ["CONC=10", *(word for word in words if not word.startswith("CONC="))]
        asked = [verb] if random.random() < 0.5 else ["plan", verb]
        if random.random() < 0.3:
            codes.add(ended(asked, {**environ, "LAB_WORDS": " ".join(map(shlex.quote, words))}))
        else:
            codes.add(ended([*asked, *words], environ))
    assert codes == {0, 1, 2}


def mutated(random: Random, text: str) -> bytes:
    """The text with one value, or one sign, that is wrong."""
    values = [*re.finditer(r"(?<== )(\"[^\"]*\"|[\w.]+)", text)]
    if values and random.random() < 0.7:
        start, end = random.choice(values).span()
        text = text[:start] + random.choice(VALUES) + text[end:]
    else:
        at = random.randrange(len(text))
        text = text[:at] + random.choice("\"'[]{}=\x00\x1b\u202e\r\ufeff#.,") + text[at + 1 :]
    return text.encode() if random.random() < 0.95 else text.encode() + b"\xff"


def test_no_file_of_a_user_ends_a_verb_in_a_traceback(home: Path) -> None:
    random, environ = Random(50), {"LAB_HOME": str(home), "LAB_LIMITS": ""}
    files = [path.read_text() for path in sorted((home / "experiments").glob("*.toml"))]
    subject = (home / "subjects/example.toml").read_text()
    gate = ["plan", "gate", "BASE=lab/fixed-pool:1", "CANDIDATE=lab/fixed-pool:2", "CONC=5"]
    for _ in range(150):
        (home / "experiments/mine.toml").write_bytes(mutated(random, random.choice(files)))
        ended(["plan", "run", "EXP=mine"], environ)
        (home / "subjects/mine.toml").write_bytes(mutated(random, subject))
        ended(["plan", "bench", "TARGET=mine", "CONC=5"], environ)
        limits = mutated(random, (REPO / "gate.toml").read_text()).decode(errors="replace")
        ended(gate, {**environ, "LAB_LIMITS": limits})
    for text in ("", "{}", "[1]", '[{"targets": 1}]', f"{'[' * 99_999}{']' * 99_999}"):
        (home / "servers/core.json").write_text(text)
        assert ended(["plan", "bench", "CONC=5"], environ) == 1


def test_no_setting_of_the_environment_ends_a_verb_in_a_traceback(home: Path) -> None:
    random = Random(51)
    verbs = (["plan", "bench", "CONC=10"], ["toxics"], ["report", "RUN=latest"])
    for name in ENVIRONMENT:
        for text in (*WRONG, "0-3", "3-1", "http://10.0.0.256:1"):
            # No environment has a NUL.
            if "\x00" not in text and text != "\ud800":
                for argv in (verbs[0], random.choice(verbs)):
                    ended(argv, {"LAB_HOME": str(home), name: text})
