"""What Grafana would make of the files: nothing overlaps, links lead somewhere, variables that
are used are there, and the folder is the one that is provisioned."""

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

UIDS = {"lab", "lab-bottleneck", "lab-compare", "lab-jvm", "lab-containers"}
FOLDER = Path("grafana") / "dashboards"
GRID_WIDTH = 24
# The port that .env publishes the agent at.
CONTROL_PAGE = "http://localhost:9464/"
# Grafana's own variables begin with two underscores.
VARIABLE = re.compile(r"\$\{?(?!__)(\w+)\}?")


@pytest.fixture(params=sorted(UIDS))
def board(request: pytest.FixtureRequest, files: dict[str, Any]) -> dict[str, Any]:
    """Each dashboard."""
    return files[request.param]


def variables(board: dict[str, Any]) -> dict[str, Any]:
    return {variable["name"]: variable for variable in board["templating"]["list"]}


def targets(board: dict[str, Any]) -> list[dict[str, Any]]:
    return [target for panel in board["panels"] for target in panel.get("targets", [])]


def queries(board: dict[str, Any]) -> list[str]:
    return [asked["expr"] for asked in targets(board) + board["annotations"]["list"]]


def test_the_dashboards_of_the_lab_are_there(files: dict[str, Any]) -> None:
    assert {name: board["uid"] for name, board in files.items()} == {uid: uid for uid in UIDS}
    assert len({board["title"] for board in files.values()}) == len(UIDS)


def test_no_panel_overlaps_another_or_leaves_the_grid(board: dict[str, Any]) -> None:
    cells: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        assert at["w"] > 0, panel["title"]
        assert at["x"] + at["w"] <= GRID_WIDTH, panel["title"]
        columns, lines = range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])
        covered = set(itertools.product(columns, lines))
        assert not covered & cells, f"{panel['title']} lies on another panel"
        cells |= covered


def test_the_titles_and_ids_of_panels_are_different(board: dict[str, Any]) -> None:
    titles = [panel["title"] for panel in board["panels"] if panel["type"] != "row"]
    assert len(set(titles)) == len(titles)
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_every_dashboard_links_to_every_other(board: dict[str, Any]) -> None:
    linked = {link["url"].removeprefix("/d/").partition("?")[0] for link in board["links"]}
    assert linked | {board["uid"]} == UIDS | {CONTROL_PAGE}
    # Only the time of Compare stays there.
    for link in board["links"]:
        if link["url"] != CONTROL_PAGE:
            own_time = board["uid"] == "lab-compare" or link["url"].startswith("/d/lab-compare")
            assert link["keepTime"] is not own_time, link["title"]


def test_a_variable_is_defined_and_used(board: dict[str, Any]) -> None:
    known = set(variables(board))
    texts = queries(board) + [target["legendFormat"] for target in targets(board)]
    texts += [str(variable.get("query", "")) for variable in variables(board).values()]
    # In a regular expression `$1` is a group, and only there.
    used = {name for text in texts for name in VARIABLE.findall(text) if not name.isdigit()}
    assert used == known


def test_a_chooser_of_several_works_with_all_of_them(board: dict[str, Any]) -> None:
    for name, variable in variables(board).items():
        if not variable.get("multi"):
            continue
        assert variable["includeAll"] is True
        assert variable["allValue"] == ".+"
        for expr in queries(board):
            matchers = re.findall(rf'(=~|!~|!=|=)"([^"]*\${{?{name}\b[^"]*)"', expr)
            assert all(how == "=~" for how, _ in matchers), expr


def test_a_variable_asks_only_for_what_comes_before_it(board: dict[str, Any]) -> None:
    seen: set[str] = set()
    for name, variable in variables(board).items():
        used = {v for v in VARIABLE.findall(str(variable["query"])) if not v.isdigit()}
        assert used <= seen, name
        seen.add(name)


def test_a_refresh_is_offered_by_its_dashboard(board: dict[str, Any]) -> None:
    # Each asks Prometheus on the machine that measures: only Lab is to show a toxic at once.
    refresh = {"lab": "2s", "lab-compare": ""}.get(board["uid"], "10s")
    assert board["refresh"] == refresh
    # Grafana sets no timer for any other.
    assert not refresh or refresh in board["timepicker"]["refresh_intervals"]


def test_the_least_step_is_the_query_s(board: dict[str, Any]) -> None:
    # The panel's "Min interval" does not count for $__rate_interval, nor does the reader look.
    assert [panel["title"] for panel in board["panels"] if "interval" in panel] == []


def test_a_p95_says_what_quick_failures_do_to_it(files: dict[str, Any]) -> None:
    p95 = re.compile(r":p95_\d+s|histogram_quantile\(0\.95")
    panels = [
        panel
        for board in files.values()
        for panel in board["panels"]
        if any(p95.search(target["expr"]) for target in panel.get("targets", []))
    ]
    assert len(panels) > 5
    assert [p["title"] for p in panels if "failure" not in p["description"].lower()] == []


def test_compare_shifts_every_query_by_the_trial_it_draws(files: dict[str, Any]) -> None:
    board = files["lab-compare"]
    assert board["annotations"]["list"] == []
    # Without a trial there is no shift of its own, and Prometheus 2.53 refuses `offset 0s`.
    shifts = [v["query"] for name, v in variables(board).items() if name.startswith("shift_")]
    assert all(query.endswith(" or vector(1))") for query in shifts)
    assert len(shifts) == 2
    for target in targets(board):
        expr, side = target["expr"], target["legendFormat"][0].lower()
        used = set(VARIABLE.findall(expr))
        assert used <= {f"{n}_{side}" for n in ("run", "trial", "server", "route", "shift")}
        series = len(re.findall(r"[a-z]\w*(?::\w+)*\{|lag_seconds:p99_6s ", expr))
        assert expr.count(f"offset ${{shift_{side}}}s") == series, expr


def test_the_folder_is_the_one_that_is_provisioned(repo: Path, compose: dict[str, Any]) -> None:
    provisioned = (repo / "grafana/provisioning/dashboards/lab.yml").read_text()
    path = yaml.safe_load(provisioned)["providers"][0]["options"]["path"]
    grafana = compose["services"]["grafana"]
    assert f"./{FOLDER}:{path}:ro" in grafana["volumes"]
    home = grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (repo / FOLDER / Path(home).name).is_file()
    assert str(Path(home).parent) == path
