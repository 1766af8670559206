from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from lab.errors import LabUnreachable
from lab.system.dashboards.__main__ import main
from lab.system.dashboards.asking import ask, expand, options, resolve
from lab.system.dashboards.model import DashboardError, Window, load
from lab.system.http import Http
from lab.system.prometheus import Prometheus

WINDOW = Window(1000, 1300, 2)


def board(**fields: Any) -> dict[str, Any]:
    panel = {
        "id": 2,
        "title": "Throughput",
        "type": "timeseries",
        "description": "what it shows",
        "fieldConfig": {"defaults": {"unit": "reqps"}},
        "targets": [{"refId": "A", "expr": 'a{server=~"$server"}', "legendFormat": "{{server}}"}],
    }
    server = {"name": "server", "multi": True, "allValue": ".+", "current": {"value": ["$__all"]}}
    return {
        "uid": "lab",
        "title": "Lab",
        "panels": [{"type": "row", "id": 1, "panels": [panel]}],
        "templating": {"list": [server]},
        "annotations": {"list": [{"name": "Trials", "expr": "b"}, {"name": "built in"}]},
    } | fields


def write(folder: Path, content: Any) -> Path:
    (folder / "lab.json").write_text(json.dumps(content))
    return folder


def prometheus(*results: dict[str, Any], asked: list[dict[str, str]] | None = None) -> Any:
    def answer(request: httpx.Request) -> httpx.Response:
        if asked is not None:
            asked.append(dict(httpx.QueryParams(request.content.decode())))
        return httpx.Response(200, json={"status": "success", "data": {"result": results}})

    return Prometheus("http://prometheus:9090", Http(httpx.MockTransport(answer)))


def test_panels_in_rows_are_read_with_all_that_a_report_needs(tmp_path: Path) -> None:
    (lab,) = load(write(tmp_path, board()))
    (panel,) = lab.panels
    assert (panel.title, panel.unit, panel.description) == ("Throughput", "reqps", "what it shows")
    assert panel.queries[0].legend == "{{server}}"
    assert lab.variables == {"server": ".+"}
    assert [mark.expr for mark in lab.annotations] == ["b"]


@pytest.mark.parametrize(
    ("value", "multi", "expanded"),
    [
        ("/downstream", False, "/downstream"),
        (["fixed-pool"], True, r"fixed\\-pool"),
        (["netty", "event-loop"], True, r"(netty|event\\-loop)"),
        ("$__all", True, ".+"),
    ],
)
def test_a_variable_opens_with_the_value_grafana_puts_in(
    tmp_path: Path, value: Any, multi: bool, expanded: str
) -> None:
    variable = {"name": "v", "multi": multi, "allValue": ".+", "current": {"value": value}}
    (lab,) = load(write(tmp_path, board(templating={"list": [variable]})))
    assert lab.variables["v"] == expanded


@pytest.mark.parametrize(
    ("step_s", "min_step_s", "expanded"),
    [
        # max(step + 1 s, 4 x 1 s) for the data source's 1 s
        (1, 0, "rate(a[4000ms])"),
        (15, 0, "rate(a[16000ms])"),
        # a query over 2 s scrapes: max(2 + 2, 4 x 2)
        (1, 2, "rate(a[8000ms])"),
        # its Min step takes the place of the data source's
        (1, 0.5, "rate(a[2000ms])"),
    ],
)
def test_the_rate_interval_is_grafanas(step_s: float, min_step_s: float, expanded: str) -> None:
    window = Window(0, 300, step_s)
    assert expand("rate(a[$__rate_interval])", {}, window, min_step_s) == expanded


def test_the_rate_interval_is_built_on_the_query_s_min_step_and_not_on_the_panel_s(
    tmp_path: Path,
) -> None:
    asked: list[dict[str, str]] = []
    content = board()
    panel = content["panels"][0]["panels"][0]
    panel["interval"] = "2s"
    rate = {"expr": "rate(a[$__rate_interval])"}
    panel["targets"] = [{"refId": "A"} | rate, {"refId": "B", "interval": "2s"} | rate]
    ask(prometheus(asked=asked), load(write(tmp_path, content)), Window(0, 300, 1))
    assert [one["query"] for one in asked] == ["rate(a[4000ms])", "rate(a[8000ms])"]


def test_range_and_interval_are_known() -> None:
    assert expand("a[$__range] b[${__interval}]", {}, WINDOW) == "a[300000ms] b[2000ms]"


def test_a_group_of_label_replace_is_no_variable() -> None:
    expr = 'label_replace(a, "server", "$1", "service", "(.+)")'
    assert expand(expr, {}, WINDOW) == expr


def test_an_unknown_variable_is_an_error_and_not_a_query() -> None:
    with pytest.raises(DashboardError, match=r"variable \$model is not known"):
        expand('a{x="$model"}', {"server": ".+"}, WINDOW)


def test_every_query_is_asked_over_the_window(tmp_path: Path) -> None:
    asked: list[dict[str, str]] = []
    series = {"metric": {"server": "fixed-pool"}, "values": [[1000, "1.5"], [1002, "NaN"]]}
    (answer,) = ask(prometheus(series, asked=asked), load(write(tmp_path, board())), WINDOW)
    assert asked == [
        {"query": 'a{server=~".+"}', "start": "1000.000", "end": "1300.000", "step": "2"}
    ]
    assert answer.where == "lab/Throughput/A"
    assert answer.series[0].labels == {"server": "fixed-pool"}
    assert answer.series[0].points == ((1000.0, 1.5),)


def test_marks_are_asked_and_what_would_answer_with_a_zero_without_it(tmp_path: Path) -> None:
    asked: list[dict[str, str]] = []
    content = board()
    (target,) = content["panels"][0]["panels"][0]["targets"]
    target["expr"] += ' or on () label_replace(vector(0), "server", "none", "", "")'
    boards = load(write(tmp_path, content))
    answers = ask(prometheus(asked=asked), boards, WINDOW, everything=True)
    assert [answer.where for answer in answers] == [
        "lab/Throughput/A",
        "lab/Throughput/A without its zero",
        "lab/marks Trials",
    ]
    assert [one["query"] for one in asked[1:]] == ['a{server=~".+"}', "b"]
    assert len(ask(prometheus(), boards, WINDOW)) == 1


def test_what_is_not_a_number_is_no_data(tmp_path: Path) -> None:
    series = {"metric": {}, "values": [[1000, "NaN"], [1002, "+Inf"]]}
    (answer,) = ask(prometheus(series), load(write(tmp_path, board())), WINDOW)
    assert answer.samples == 0


def test_a_variable_may_be_set(tmp_path: Path) -> None:
    boards = load(write(tmp_path, board()))
    (answer,) = ask(prometheus(), boards, WINDOW, {"server": "fixed-pool"})
    assert answer.expr == 'a{server=~"fixed-pool"}'


def asking_board(**time: str) -> dict[str, Any]:
    """A dashboard with two variables to ask for, the second by the first."""
    run = {
        "name": "run",
        "query": "query_result(max by (run) (t[100y] offset -50y))",
        "regex": '/run="([^"]+)"/',
        "sort": 2,
    }
    trial = {
        "name": "trial",
        "query": 'query_result(max by (trial) (t{run="$run"}))',
        "regex": '/trial="([^"]+)"/',
        "sort": 1,
    }
    content = board(templating={"list": [run, trial]}, time=time)
    content["panels"][0]["panels"][0]["targets"][0]["expr"] = 'a{x="$run/$trial"}'
    return content


def of_trials(asked: list[dict[str, str]]) -> Prometheus:
    """A Prometheus that knows two runs of two trials."""

    def answer(request: httpx.Request) -> httpx.Response:
        query = dict(httpx.QueryParams(request.content.decode()))
        asked.append(query)
        label, values = "trial", ["02", "01"]
        if "max by (run)" in query["query"]:
            label, values = "run", ["r1", "r2"]
        found = [{"metric": {"__name__": "t", label: each}, "value": [7.5, "1"]} for each in values]
        if request.url.path.endswith("query_range"):
            found = []
        return httpx.Response(200, json={"status": "success", "data": {"result": found}})

    return Prometheus("http://prometheus:9090", Http(httpx.MockTransport(answer)))


def test_a_variable_is_asked_for_and_takes_the_first_in_its_order(tmp_path: Path) -> None:
    asked: list[dict[str, str]] = []
    (lab,) = load(write(tmp_path, asking_board()))
    assert resolve(of_trials(asked), lab, WINDOW) == {"run": "r2", "trial": "01"}
    assert asked[0] == {"query": "max by (run) (t[100y] offset -50y)", "time": "1300.000"}
    assert asked[1]["query"] == 'max by (trial) (t{run="r2"})'


def test_what_is_chosen_is_not_asked_for(tmp_path: Path) -> None:
    asked: list[dict[str, str]] = []
    (lab,) = load(write(tmp_path, asking_board()))
    chosen = resolve(of_trials(asked), lab, WINDOW, {"run": "r1"})
    assert chosen == {"run": "r1", "trial": "01"}
    assert [each["query"] for each in asked] == ['max by (trial) (t{run="r1"})']


def test_what_can_be_chosen_is_known_of_a_variable_with_a_value_too(tmp_path: Path) -> None:
    asked: list[dict[str, str]] = []
    content = asking_board()
    content["templating"]["list"][0]["current"] = {"value": "r1"}
    (lab,) = load(write(tmp_path, content))
    run = lab.questions[0]
    assert lab.variables == {"run": "r1"}
    assert options(of_trials(asked), run, WINDOW, {}) == ["r2", "r1"]


def test_without_an_answer_a_variable_is_empty(tmp_path: Path) -> None:
    (lab,) = load(write(tmp_path, asking_board()))
    assert resolve(prometheus(), lab, WINDOW) == {"run": "", "trial": ""}


def test_a_variable_asked_in_a_way_the_reader_does_not_know_is_an_error(tmp_path: Path) -> None:
    content = asking_board()
    content["templating"]["list"][0]["query"] = "metrics(up)"
    (lab,) = load(write(tmp_path, content))
    with pytest.raises(DashboardError, match=r"\$run asks metrics"):
        resolve(prometheus(), lab, WINDOW)


def test_a_fixed_range_is_asked_whatever_the_window(tmp_path: Path) -> None:
    asked: list[dict[str, str]] = []
    content = asking_board(**{"from": "2000-01-01T00:00:00.000Z", "to": "2000-01-01T00:01:00.000Z"})
    (answer,) = ask(of_trials(asked), load(write(tmp_path, content)), WINDOW)
    assert answer.expr == 'a{x="r2/01"}'
    assert asked[0]["time"] == "946684860.000"
    assert (asked[-1]["start"], asked[-1]["end"]) == ("946684800.000", "946684860.000")


def test_a_range_up_to_now_follows_the_window(tmp_path: Path) -> None:
    (lab,) = load(write(tmp_path, asking_board(**{"from": "now-5m", "to": "now"})))
    assert lab.range_s is None


def test_a_refused_query_is_told_in_prometheus_own_words() -> None:
    refusal = {"status": "error", "error": "parse error: unexpected }"}
    transport = httpx.MockTransport(lambda _: httpx.Response(400, json=refusal))
    with pytest.raises(LabUnreachable, match=r"refused 'a}': parse error: unexpected }"):
        Prometheus("http://prometheus:9090", Http(transport)).range("a}", 1000, 1300, 2)


def test_no_prometheus_is_one_clear_error() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(502, text="bad gateway"))
    with pytest.raises(LabUnreachable, match=r"prometheus: http://\S+ does not answer with JSON"):
        Prometheus("http://prometheus:9090", Http(transport)).range("a", 1000, 1300, 2)


@pytest.mark.parametrize("content", [{}, [], {"uid": "lab", "title": "Lab", "panels": [{}]}])
def test_what_is_no_dashboard_names_its_file(tmp_path: Path, content: Any) -> None:
    with pytest.raises(DashboardError, match=r"lab\.json: not a classic dashboard"):
        load(write(tmp_path, content))


def test_an_empty_folder_is_not_taken_for_success(tmp_path: Path) -> None:
    with pytest.raises(DashboardError, match="no dashboard"):
        load(tmp_path)


def test_a_window_runs_forward() -> None:
    with pytest.raises(ValueError, match="ends after it starts"):
        Window(10, 10, 1)


def test_the_program_says_where_the_dashboards_are_missing(tmp_path: Path) -> None:
    with pytest.raises(DashboardError, match="no dashboard"):
        main([], {"LAB_HOME": str(tmp_path)}, io.StringIO())
