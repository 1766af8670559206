"""The measured numbers of the pages: reduces a run to docs/results/, and finds the marks in pages.

add RUN_DIR NAME
    docs/results/NAME-HOST.csv is what the pages need of the run's trials.csv, cell by
    cell as it is there, and NAME-HOST.json of its manifest, with the findings of each launch that
    follow from files which are not kept (recovery, growth). HOST is the short id of the run's
    host. Then as `page`
page
    writes the table of docs/results/README.md

A mark is a comment, at the begin of a line, above a table, a block of code or a paragraph. Its
first line has what is recomputed, cell by cell, and each other line the begin of a row (or of a
text) and a file's name:

    <!-- results
    A goodput_rps | - | B/A cpu_server_us
    netty: loops-1
    -->

loadgen/tests/test_published.py recomputes them, and says what can stand in a mark's first line.
"""

import csv
import io
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from runpy import run_path
from typing import Any

from pages import between

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
FOLDER = DOCS / "results"
PAGE = FOLDER / "README.md"
# What the medians, intervals, ratios and answers of the lab are made of. `run` is in the JSON.
TRIALS = (
    "trial", "server", "route", "engine", "mode", "concurrency", "offered_rps", "predicted_rps",
    "achieved_rps", "p50_ms", "p95_ms", "p99_ms", "max_ms", "raw_p50_ms", "raw_p95_ms",
    "raw_p99_ms", "ok", "http_errors", "socket_errors", "timeouts", "valid", "invalid_reasons",
    "bottleneck", "strength", "started_at", "window_s", "accounted_s", "launch", "arm", "window_ok",
    "window_http_errors", "window_lost", "duration_s", "warmup_s", "overloaded", "spun",
    "cpu_server_us", "cpu_proxy_us", "cpu_downstream_us", "cpu_generator_us", "cpu_observation_us",
    "time_generator_ms", "time_connect_ms", "time_queue_ms", "time_own_ms", "time_pending_ms",
    "time_path_ms", "time_downstream_ms", "time_unexplained_ms", "others_cpu", "due",
    "late_p99_ms", "late_max_ms", "think_ms", "failed_mean_ms", "failed_p50_ms", "failed_p95_ms",
    "slo_p50_ms", "slo_p95_ms", "slo_p99_ms", "p50_error", "p95_error", "p99_error",
    "live_heap_bytes", "resident_bytes", "host_busy",
    "host_steal", "ref_compute", "ref_compute_all", "ref_wake", "ref_net",
    "host_pressure", "server_run_s", "server_runq_s", "server_runq_class", "proxy_run_s",
    "proxy_runq_s", "downstream_run_s", "downstream_runq_s", "generator_run_s", "generator_runq_s",
)  # fmt: skip
# Of these a search of the rate is not made, and the answers of the others not of those.
NOT_OF = {
    "capacity": ("raw_p50_ms", "raw_p95_ms", "raw_p99_ms"),
    "loads": (
        "time_connect_ms", "time_queue_ms", "time_own_ms", "time_pending_ms", "time_path_ms",
        "time_downstream_ms", "time_unexplained_ms",
    ),
}  # fmt: skip
# Of the whole run: nothing is made of them where the window's own are told.
OF_WHOLE_RUN = ("ok", "http_errors", "socket_errors", "timeouts", "accounted_s")
# Their findings follow from what is not kept: seconds of a load, samples, or conditions.
OF_RAW_DATA = ("spike", "faults", "endurance", "explain")
MEDIAN = ", median"
# By these `make compare` knows a machine.
MACHINE = ("cpu_model", "cpu_id", "cores", "memory_bytes", "kernel", "docker_version")
host_id = run_path(str(ROOT / "loadgen/src/lab/model/host_facts.py"))["host_id"]
TEXTS = ("question", "hypothesis")
# These settings are told where a run had others than .env.
USUAL = {"DOWNSTREAM_DELAY_MS": "200", "SERVER_CPUS": "", "SERVER_POOL_SIZE": "200"}
OPEN = re.compile(r"^<!-- results$", re.MULTILINE)
MARK = re.compile(rf"{OPEN.pattern}\n(?P<cells>.+)\n(?P<rows>(?:.+: .+\n)+)-->\n", re.MULTILINE)
SOURCE = re.compile(r"(?P<file>[a-z0-9.-]+)(?:\[(?P<cells>[^\[\]]+)\])?")
COMMENT = re.compile(r"<!--.*?-->\n", re.DOTALL)


@dataclass(frozen=True)
class Mark:
    """A mark of a page: `cells` are what is recomputed, `rows` the begin of a row and its files,
    `block` the lines below it, up to the next that is empty or a comment."""

    cells: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    block: str

    @property
    def files(self) -> Iterator[str]:
        return (source(name)[0] for _, names in self.rows for name in names)


def source(name: str) -> tuple[str, dict[str, str]]:
    """The file that a mark names, and the cells that its rows must have. Raises ValueError."""
    found = SOURCE.fullmatch(name)
    if found is None:
        raise ValueError(f"{name}: a file's name is of small letters, digits and -, then [c=x,d=y]")
    cells = filter(None, (found["cells"] or "").split(","))
    return found["file"], dict(one.split("=", 1) for one in cells)


def marks(page: str) -> Iterator[Mark]:
    """The marks of a page. Raises ValueError for one that cannot be read."""
    found = list(MARK.finditer(page))
    if unread := len(OPEN.findall(page)) - len(found):
        raise ValueError(f"{unread} marks cannot be read")
    for mark in found:
        rest = page[mark.end() :]
        while comment := COMMENT.match(rest):
            rest = rest[comment.end() :]
        lines = [line.rpartition(": ") for line in mark["rows"].splitlines()]
        rows = tuple((label, tuple(names.split())) for label, _, names in lines)
        cells = tuple(cell.strip() for cell in mark["cells"].split("|"))
        yield Mark(cells, rows, rest.partition("\n\n")[0].partition("\n<!--")[0])


def reduced(text: str, kept: Sequence[str]) -> str:
    """The columns of a CSV file that are kept, without those that are empty in all rows, and those
    of the whole run where each row that has answers tells its window's."""
    rows = list(csv.DictReader(text.splitlines()))
    if all(row.get("window_lost") for row in rows if row.get("achieved_rps")):
        kept = [name for name in kept if name not in OF_WHOLE_RUN]
    columns = [name for name in kept if any(row.get(name) for row in rows)]
    found = io.StringIO()
    writer = csv.DictWriter(found, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return found.getvalue()


def kept_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a manifest: the run, its code, its machine, its servers' JDKs, and its
    experiment without the texts."""
    servers, experiment = manifest["servers"].values(), manifest["experiment"].items()
    return {
        **{key: manifest[key] for key in ("run", "status", "started_at", "ended_at")},
        **{key: manifest["versions"].get(key) for key in ("commit", "commit_dirty")},
        "machine": {key: manifest["host"].get(key) for key in MACHINE},
        "settings": [*otherwise(servers)],
        "jdk": sorted({server["identity"]["jdk"] for server in servers}),
        "experiment": {
            key: value
            for key, value in experiment
            if key not in TEXTS and value not in (None, [], {})
        },
    }


def otherwise(servers: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The settings of a run that are not those of .env, as words. All servers that have such a
    setting must have had the same."""
    values: dict[str, set[str]] = {name: set() for name in USUAL}
    for server in servers:
        spread, settings = server.get("spread"), server["settings"]
        delay = spread["words"] if spread else f"{server['downstream_delay_ms']:g}"
        values["DOWNSTREAM_DELAY_MS"].add(delay)
        quota, pool = settings.get("cpu_quota"), settings.get("pool_size")
        values["SERVER_CPUS"].add("" if quota is None else f"{quota:g}")
        if pool is not None:
            values["SERVER_POOL_SIZE"].add(f"{pool:g}")
    for name, found in values.items():
        if len(found) == 1 and found != {USUAL[name]}:
            yield f"{name}={found.pop()}"


def add(run_dir: Path, name: str) -> str:
    """Reduce a run to the two files of that name, which replace older ones, and write the
    README. Returns that name with the host's id. Raises ValueError for a name or a folder that
    cannot be."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise ValueError(f"{name}: a name is of small letters, digits and -")
    source = run_dir / "trials.csv"
    if not source.is_file() or not (run_dir / "manifest.json").is_file():
        raise ValueError(f"{run_dir} is no run of trials")
    manifest = json.loads((run_dir / "manifest.json").read_text())
    kind = manifest["experiment"].get("kind")
    whole = kept_of(manifest)
    if kind in OF_RAW_DATA:
        found = json.loads((run_dir / "findings.json").read_text())
        whole["findings"] = [each for each in found if not each["name"].endswith(MEDIAN)]
    columns = [column for column in TRIALS if column not in NOT_OF.get(kind, ())]
    name = f"{name}-{host_id(manifest['host']) or 'unknown'}"
    (FOLDER / f"{name}.csv").write_text(reduced(source.read_text(), columns))
    (FOLDER / f"{name}.json").write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(with_table(PAGE.read_text()))
    return name


def pages() -> dict[str, str]:
    """The pages of docs/, and README.md, by name."""
    paths = (ROOT / "README.md", *sorted(DOCS.glob("*.md")))
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in paths}


def command(of: Mapping[str, Any]) -> str:
    """The command of a run."""
    words = of["experiment"].get("words", [])
    file = any(word.startswith("EXP=") for word in words)
    verb = "run" if file else of["experiment"]["kind"]
    older = ("JDK=21",) if {one.partition(".")[0] for one in of.get("jdk", ())} == {"21"} else ()
    settings = (*of.get("settings", ()), *older)
    return " ".join(("make", verb.replace("loads", "bench"), *words, *settings))


def with_table(readme: str) -> str:
    """The README with a row for each file."""
    lines = ["| file | run | of | host | commit | command |", "|---|---|---|---|---|---|"]
    for path in sorted(FOLDER.glob("*.json")):
        of = json.loads(path.read_text())
        host = f"`{host_id(of['machine']) or 'unknown'}`"
        status = "" if of["status"] == "complete" else f" ({of['status']})"
        file = f"[{path.stem}]({path.stem}.csv)"
        cells = (file, f"`{of['run']}`{status}", of["started_at"][:10], host)
        lines.append(f"| {' | '.join((*cells, str(of['commit'])[:8], f'`{command(of)}`'))} |")
    return between(readme, "tables", "\n".join(lines))


if __name__ == "__main__":
    try:
        if sys.argv[1:2] == ["add"] and len(sys.argv) == 4:
            add(Path(sys.argv[2]), sys.argv[3])
        elif sys.argv[1:] == ["page"]:
            PAGE.write_text(with_table(PAGE.read_text()))
        else:
            sys.exit("published.py: add RUN_DIR NAME, or page")
    except (ValueError, OSError) as failure:
        sys.exit(f"published.py: {failure}")
