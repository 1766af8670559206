"""The checked-in dashboards: as their code says, explained, and asking for what exists."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab_dashboards.build import build

from lab.judge.resources import RESOURCES
from lab.live.agent.metrics import OUTCOMES, SINCE, SOURCES
from lab.live.clock import Clock
from lab.live.control.live import EXPRESSIONS
from lab.model.routes import ROUTES
from lab.system.agent import PHASES
from live.conftest import metrics_of
from support import dashboards
from support.dashboards import DATA_SOURCE_INTERVAL_S

Boards = tuple[dashboards.Dashboard, ...]
# Expressions by the recorded name, and metrics by their series, or their job and name.
Rules = dict[str, str]
Metrics = dict[str, dict[str, Any]]
Asked = list[tuple[dashboards.Panel, dashboards.Query]]
# Labels that Prometheus adds: by the scrape, or by relabelling (prometheus/prometheus.yml).
# Also of cAdvisor, where the lab is on several machines: `machine`.
TARGET_LABELS = {"job", "instance", "machine", "server", "service", "project", "le", "quantile"}
BUILT_IN = {"up"}
KEYWORDS = {"by", "without", "on", "ignoring", "group_left", "group_right", "bool"}
KEYWORDS |= {"and", "or", "unless"}
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}
# Compare asks for it beside every series: when the trial was measured.
MEASURED = "trial:lab_trial_info:timestamp"
# In front of a recorded series that is of all together.
ONE = {"machine", "downstream", "trial"}
# Labels that a line's name need not have: another one tells as much.
KNOWN_BY_ANOTHER = {
    ("CPU throttling", "A"): {"service"},  # it is the server
    ("File descriptors", "C"): {"server"},  # of the path, not of a server
    ("File descriptors", "D"): {"server"},
    ("Toxics in force", "C"): {"type"},  # the toxic's name
    ("Toxics in force", "D"): {"type"},
}
# Names of series whose values have this unit. A share is one of two alike, or of seconds a second.
OF_UNIT = {
    "s": r"_seconds(:p\d\d_\w+|:ratio\w*|_sum)?$",
    "bytes": r"_(bytes|rss)(:sum)?$",
    "Bps": r"_bytes:irate\w+$",
    "pps": r"_packets_\w+_total$",
    "cps": r"_(total|count)$",
    "reqps": r"_(requests|calls|requests_offered):rate\w+$|_(rps|requests_total)$"
    r"|_(overflows|connect_failures|retries)_total$",
    "percentunit": r":ratio\w*$|_seconds(:i?rate\w+|_total)$|_cpu_(usage:irate\w+|limit:max)$"
    r"|_cpu_cores:max$|_bytes(:sum|:max)?$",
    "short": r"^(?!.*_(bytes|rss|seconds|usage)\b)",
    "none": r"^lab_tox(ic|iproxy)",
}
# Series of what is set, and not measured.
SETTING = (
    r"_(size|parallelism|cap|concurrency|max_bytes|limit_bytes|max_fds|local_ports|offered_rps)$"
    r"|_spec_cpu_limit:max$|_cpu_cores:max$|_delay_seconds$|_added_latency_seconds$"
    r"|_requests_offered:rate5s$|_queue_bound$"
)
# A series of Bottleneck that shows each resource.
SHOWN = {
    "worker pool": "lab_worker_pool_queue_depth",
    "carrier threads": "lab_virtual_thread_scheduler_queued",
    "pinned carriers": "lab_wait_seconds_total",
    "event loop": "server_loop:lab_event_loop_busy_seconds:rate5s",
    "front": "lab_front_busy_seconds_total",
    "lock": "lab_wait_seconds_total",
    "server CPU": "server:container_cpu_usage:irate8s",
    "garbage collection": "server:jvm_gc_collection_seconds:rate10s",
    "accept queue": "lab_kernel_listen_overflows_total",
    "file descriptors": "process_open_fds",
    "ports": "lab_local_ports",
    "downstream connections": "lab_downstream_connections_pending",
    "downstream timeout": "server_outcome:lab_downstream_calls:rate5s",
    "network": "lab_kernel_tcp_retransmits_total",
    "connection set-up": "lab_path_accept_queue_length",
    "Toxiproxy": "go_goroutines",
    "downstream": "downstream:lab_downstream_lag_seconds:p99_6s",
    "host CPU": "machine:host_cpu_usage:ratio",
    "work outside the lab": "machine:host_cpu_usage:ratio",
    "connections of the load": "lab_client_requests_waiting",
    "generator": "service:container_cpu_usage:irate8s",
}
# No series of Prometheus is as fine as 10 ms: only the lines of pacer are.
NOT_SHOWN = {"waves of the load"}


@pytest.fixture(scope="session")
def boards() -> Boards:
    return dashboards.load()


@pytest.fixture(scope="session")
def asked(boards: Boards) -> Asked:
    """Every query of a panel."""
    return [both for board in boards for both in board.queries()]


@pytest.fixture(scope="session")
def rules(repo: Path) -> Rules:
    """Recorded name to expression."""
    files = sorted((repo / "prometheus" / "rules").glob("*.yml"))
    groups = [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]
    return {rule["record"]: rule["expr"] for group in groups for rule in group["rules"]}


@pytest.fixture(scope="session")
def scraping(repo: Path) -> dict[str, Any]:
    """The configuration of Prometheus."""
    return yaml.safe_load((repo / "prometheus" / "prometheus.yml").read_text())


@pytest.fixture(scope="session")
def by_job(repo: Path) -> Metrics:
    """The metrics that each job exports, with their types and labels."""
    return json.loads((repo / "prometheus" / "vocabulary.json").read_text())


def exported(by_job: Metrics) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Job, name and metric of every exported series."""
    for job, metrics in by_job.items():
        for name, metric in metrics.items():
            for suffix in SUFFIXES.get(metric["type"], ("",)):
                yield job, name + suffix, metric


@pytest.fixture(scope="session")
def vocabulary(by_job: Metrics) -> Metrics:
    """Every series that the lab exports, and its metric."""
    return {name: metric for _, name, metric in exported(by_job)}


def expressions(boards: Boards, rules: Rules) -> Iterator[tuple[str, str]]:
    for board in boards:
        for panel, query in board.queries():
            yield f"{board.uid}/{panel.title}", query.expr
        for mark in board.annotations:
            yield f"{board.uid}, marks {mark.ref}", mark.expr
        for question in board.questions:
            yield f"{board.uid}, variable {question.variable}", asked_by(question.query)
    for name, expr in EXPRESSIONS.items():
        yield f"control page, {name}", expr
    yield from rules.items()


def asked_by(query: str) -> str:
    """The PromQL of a variable's query: a chooser's label_values(SELECTOR, LABEL) as an
    expression of the series it looks at, by that label."""
    chooser = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
    if chooser is None:
        return query
    several = re.fullmatch(r'\{__name__=~"([\w|]+)"\}', chooser[1])
    series = several[1].replace("|", " or ") if several else chooser[1]
    return f"count by ({chooser[2]}) ({series})"


def names_in(expr: str) -> set[str]:
    """The series names of a PromQL expression: identifiers that are no function, keyword,
    label, variable or window."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', expr)
    bare = re.sub(r"\boffset\s+-?(?:\d+\w|\$\{\w+\}s)", " ", bare)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", " ", bare)
    bare = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", bare)
    words = re.findall(r"[a-zA-Z_:][a-zA-Z0-9_:]*(?!\w|\s*\()", bare)
    return set(words) - KEYWORDS


def labels_in(expr: str) -> set[str]:
    """The label names of an expression's matchers and groupings."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', expr)
    found: set[str] = set()
    for matchers in re.findall(r"\{([^}]*)\}", bare):
        found |= set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))
    grouped = r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)"
    for group in re.findall(grouped, bare):
        found |= set(re.findall(r"\w+", group))
    return found


def test_the_files_are_what_the_code_builds() -> None:
    on_disk = {file.name: file.read_text() for file in dashboards.FOLDER.glob("*.json")}
    assert on_disk == dict(build()), "run `make dashboards` and commit the result"


def test_panels_and_lines_are_explained(boards: Boards, asked: Asked) -> None:
    panels = [panel for board in boards for panel in board.panels]
    assert panels
    assert [panel.title for panel in panels if not panel.unit] == []
    assert [panel.title for panel in panels if len(panel.description) < 40] == []
    assert [panel.title for panel in panels if not panel.queries] == []
    assert [panel.title for panel, query in asked if not query.legend] == []
    for panel in panels:
        legends = [query.legend for query in panel.queries]
        assert len(set(legends)) == len(legends), panel.title


def apart(expr: str, labels: Mapping[str, set[str]]) -> set[str]:
    """The labels that can tell the lines of a query apart, and "__name__" where it is of metrics
    by turns; `labels` are those of each series."""
    grouped = re.match(r"\(?(?:sum|max|min)(?: by \(([^)]*)\))? ?\(", expr)
    if grouped:
        return set(filter(None, re.split(", ?", grouped[1] or "")))
    found = set[str]().union(*(labels[name] for name in names_in(expr) - {MEASURED}))
    if re.search(r"\bor (?:on \([^)]*\) )?[a-z][\w:]*\{", expr):
        found.add("__name__")
    return found - set(re.findall(r'(\w+)="[^"]*"', expr))


@pytest.fixture(scope="session")
def labels(by_job: Metrics, rules: Rules) -> dict[str, set[str]]:
    """The labels of every series; those of a recorded one are in front of its name."""
    found = {name: set(name.partition(":")[0].split("_")) - ONE for name in rules}
    for job, name, metric in exported(by_job):
        of_job = {"server"} if job in ("server", "jvm") else set()
        found.setdefault(name, set()).update(metric["labels"], of_job)
        if name.startswith("process_"):  # Of several jobs.
            found[name].add("job")
    return found


def test_lines_have_different_names(asked: Asked, labels: dict[str, set[str]]) -> None:
    for panel, query in asked:
        named = set(re.findall(r"{{(\w+)}}", query.legend))
        known = KNOWN_BY_ANOTHER.get((panel.title, query.ref), set())
        assert apart(query.expr, labels) <= named | known, (panel.title, query.legend)


def test_a_panel_s_unit_is_that_of_what_it_asks_for(asked: Asked) -> None:
    assert {panel.unit for panel, _ in asked} == set(OF_UNIT)
    for panel, query in asked:
        names = names_in(query.expr) - {MEASURED}
        of_unit = [name for name in names if re.search(OF_UNIT[panel.unit], name)]
        # A constant is of any unit.
        assert of_unit or not names, (panel.title, panel.unit, query.expr)


def test_a_counter_is_drawn_as_a_rate(asked: Asked) -> None:
    for panel, query in asked:
        for name in names_in(query.expr):
            if name.endswith(("_total", "_sum", "_count")):
                assert f"rate({name}" in query.expr, panel.title


def test_a_limit_is_a_dashed_line_and_no_threshold(asked: Asked) -> None:
    # A threshold is a number in the file; a limit is a setting, which may change.
    for file in dashboards.FOLDER.glob("*.json"):
        assert "threshold" not in file.read_text().replace("linearThreshold", ""), file.name
    dashed = [(panel.title, query.expr) for panel, query in asked if query.is_dashed]
    assert len(dashed) > 20
    for title, expr in dashed:
        names = names_in(expr) - {MEASURED}
        # The one number that no setting changes: all CPUs.
        assert names or expr == "vector(1)", (title, expr)
        assert all(re.search(SETTING, name) for name in names), (title, expr)
    limits = [query for _, query in asked if re.search(r"\b(limit|cap)$", query.legend)]
    assert len(limits) > 5
    assert [query.expr for query in limits if not query.is_dashed] == []


def panel_of(boards: Boards, uid: str, title: str) -> dashboards.Panel:
    (found,) = (p for board in boards if board.uid == uid for p in board.panels if p.title == title)
    return found


def test_bottleneck_shows_every_resource_that_a_verdict_can_name(boards: Boards) -> None:
    assert {*SHOWN} == {*RESOURCES} - NOT_SHOWN
    (board,) = (board for board in boards if board.uid == "lab-bottleneck")
    names = {name for _, query in board.queries() for name in names_in(query.expr)}
    assert {resource for resource, series in SHOWN.items() if series not in names} == set()


def test_open_files_have_their_process_s_limit_and_toxics_their_share(boards: Boards) -> None:
    queries = panel_of(boards, "lab-bottleneck", "File descriptors").queries
    opened, most = ({q.expr for q in queries if q.is_dashed is dashed} for dashed in (False, True))
    assert {expr.replace("open_fds", "max_fds") for expr in opened} == most
    assert all(re.fullmatch(r"process_\w+\{[^}]+\}", expr) for expr in opened)
    toxics = [query.expr for query in panel_of(boards, "lab", "Toxics in force").queries]
    assert 'lab_toxic_attribute{attribute="toxicity"} != 1' in toxics


def test_cycles_beside_the_program_are_no_pauses(boards: Boards, rules: Rules) -> None:
    asked = [
        matchers
        for _, expr in expressions(boards, rules)
        for matchers in re.findall(r"jvm_gc_collection_seconds_sum\{([^}]*)\}", expr)
    ]
    assert len(asked) > 1
    assert [one for one in asked if 'gc!~".*Cycles.*"' not in one] == []


def test_every_query_has_the_provisioned_data_source(repo: Path, files: dict[str, Any]) -> None:
    provisioned = repo / "grafana" / "provisioning" / "datasources" / "prometheus.yml"
    source = yaml.safe_load(provisioned.read_text())["datasources"][0]
    # The tests expect this interval.
    assert source["jsonData"]["timeInterval"] == f"{DATA_SOURCE_INTERVAL_S:g}s"
    for board in files.values():
        panels = [panel for panel in board["panels"] if panel["type"] != "row"]
        asked = panels + [target for panel in panels for target in panel["targets"]]
        asked += board["annotations"]["list"]
        asked += [v for v in board["templating"]["list"] if v["type"] == "query"]
        sources = [one["datasource"] for one in asked]
        assert sources == [{"type": source["type"], "uid": source["uid"]}] * len(asked)


def test_every_metric_and_label_exists(boards: Boards, rules: Rules, vocabulary: Metrics) -> None:
    series = BUILT_IN.union(rules, vocabulary)
    known = TARGET_LABELS.union(*(metric["labels"] for metric in vocabulary.values()))
    for where, expr in expressions(boards, rules):
        assert names_in(expr) <= series, where
        assert labels_in(expr) <= known, where


def test_every_recorded_series_is_tested(repo: Path, rules: Rules) -> None:
    tests = "".join(f.read_text() for f in (repo / "prometheus" / "rule-tests").glob("*.yml"))
    assert [name for name in rules if name not in tests] == []


def test_the_route_that_a_page_opens_with_is_one_and_is_always_offered(boards: Boards) -> None:
    (lab,) = (board for board in boards if board.uid == "lab")
    (route,) = (question for question in lab.questions if question.variable == "route")
    opens = lab.variables["route"]
    assert opens in [known.path for known in ROUTES]
    # Of a lab that nobody has asked for anything it is the only one.
    assert f'or label_replace(vector(0), "route", "{opens}", "", "")' in route.query
    # A service of the user's own has a route of its own.
    assert re.findall(route.regex, '{route="/wait.jsp"} 1 1300000') == ["/wait.jsp"]


def test_cadvisor_s_series(scraping: dict[str, Any], by_job: Metrics) -> None:
    (cadvisor,) = (job for job in scraping["scrape_configs"] if job["job_name"] == "cadvisor")
    (kept,) = (one for one in cadvisor["metric_relabel_configs"] if one.get("action") == "keep")
    assert sorted(kept["regex"].split("|")) == sorted(by_job["cadvisor"])
    # Without it Prometheus draws what cAdvisor, which sends times, last said for five minutes.
    assert cadvisor["track_timestamps_staleness"] is True


def test_only_rules_read_buckets_and_the_machine(boards: Boards, rules: Rules) -> None:
    # cAdvisor tells the machine's CPUs and memory only every few minutes: the rules keep them.
    machine = {"machine_cpu_cores", "machine_memory_bytes"}
    asked = {name for _, expr in expressions(boards, {}) for name in names_in(expr)}
    assert {name for name in asked if name in machine or name.endswith("_bucket")} == set()
    reading = {name: expr for name, expr in rules.items() if names_in(expr) & machine}
    kept = [f"machine:{name}:max" for name in sorted(machine)]
    each = "machine:machine_cpu_cores:each"
    assert list(reading) == [*kept, each, "machine:host_cpu_usage:ratio"]
    assert all("last_over_time(machine_" in expr for expr in reading.values())


def test_a_rate_interval_spans_scrapes_of_its_slowest_job(
    scraping: dict[str, Any], asked: Asked, by_job: Metrics
) -> None:
    every = {
        job["job_name"]: job.get("scrape_interval", scraping["global"]["scrape_interval"])
        for job in scraping["scrape_configs"]
    }
    scraped_s: dict[str, float] = {}
    for job, name, _ in exported(by_job):
        scraped_s[name] = max(float(every[job].removesuffix("s")), scraped_s.get(name, 0))
    slowest_s = set()
    for panel, query in asked:
        if "$__rate_interval" in query.expr:
            slowest = max(scraped_s[name] for name in names_in(query.expr) & set(scraped_s))
            slowest_s.add(slowest)
            step_s = query.min_step_s or DATA_SOURCE_INTERVAL_S
            assert step_s >= slowest, (panel.title, query.ref)
    assert slowest_s == {1, 2}


def test_what_draws_zero_for_nothing_is_known_to_the_tests(asked: Asked) -> None:
    # Such a query always answers: only what it asks without its zero shows a wrong name.
    zeros = [query for _, query in asked if "vector(0)" in query.expr]
    assert len(zeros) > 4
    assert [query.expr for query in zeros if query.bare is None] == []
    assert not any("vector(0)" in (query.bare or "") for query in zeros)


def test_the_values_of_a_label_are_those_of_its_code(repo: Path, vocabulary: Metrics) -> None:
    def constants(enum: str) -> list[str]:
        code = repo / "servers/spec/src/main/java/lab/spec" / f"{enum}.java"
        names = re.findall(r"^  ([A-Z_]+)[,;]$", code.read_text(), re.MULTILINE)
        return [name.lower() for name in names]

    for name, label, values in (
        ("lab_http_requests_total", "outcome", constants("Outcome")),
        ("lab_downstream_calls_total", "outcome", constants("DownstreamOutcome")),
        ("lab_client_requests_total", "outcome", OUTCOMES),
        ("lab_client_requests_total", "source", SOURCES),
        ("lab_client_request_seconds_count", "since", SINCE),
        ("lab_client_request_seconds_count", "phase", PHASES),
        ("lab_trial_info", "phase", PHASES),
    ):
        assert vocabulary[name]["values"][label] == list(values), (name, label)


def test_the_agent_exports_what_the_vocabulary_says(by_job: Metrics) -> None:
    exported = {
        family.name + ("_total" if family.type == "counter" else ""): family.type
        for family in metrics_of(Clock()).collect()
    }
    assert exported == {name: metric["type"] for name, metric in by_job["loadgen"].items()}
