"""What Grafana would make of the files: nothing overlaps, links lead somewhere, variables that
are used are there, and the folder is the one that is provisioned."""

import itertools
import json
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


@pytest.fixture(scope="session")
def files(repo: Path) -> dict[str, Any]:
    """Every dashboard as it is in its file, by uid."""
    boards = [json.loads(file.read_text()) for file in (repo / FOLDER).glob("*.json")]
    return {board["uid"]: board for board in boards}


def variables(board: dict[str, Any]) -> dict[str, Any]:
    return {variable["name"]: variable for variable in board["templating"]["list"]}


def queries(board: dict[str, Any]) -> list[str]:
    asked = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    return asked + [mark["expr"] for mark in board["annotations"]["list"]]


def test_the_dashboards_of_the_lab_are_there(files: dict[str, Any]) -> None:
    assert set(files) == UIDS
    assert len({board["title"] for board in files.values()}) == len(UIDS)


def test_no_panel_overlaps_another_or_leaves_the_grid(files: dict[str, Any]) -> None:
    for uid, board in files.items():
        cells: set[tuple[int, int]] = set()
        for panel in board["panels"]:
            at = panel["gridPos"]
            assert at["w"] > 0, (uid, panel["title"])
            assert at["x"] + at["w"] <= GRID_WIDTH, (uid, panel["title"])
            columns, lines = range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])
            own = set(itertools.product(columns, lines))
            assert not own & cells, f"{uid}/{panel['title']} lies on another panel"
            cells |= own


def test_titles_within_a_dashboard_tell_its_panels_apart(files: dict[str, Any]) -> None:
    for uid, board in files.items():
        titles = [panel["title"] for panel in board["panels"] if panel["type"] != "row"]
        assert len(set(titles)) == len(titles), uid


def test_every_dashboard_leads_to_every_other(files: dict[str, Any]) -> None:
    for uid, board in files.items():
        targets = {link["url"].removeprefix("/d/").partition("?")[0] for link in board["links"]}
        assert targets | {uid} == UIDS | {CONTROL_PAGE}


def test_the_time_of_compare_stays_there(files: dict[str, Any]) -> None:
    for uid, board in files.items():
        for link in board["links"]:
            if link["url"] == CONTROL_PAGE:
                continue
            own_time = uid == "lab-compare" or link["url"].startswith("/d/lab-compare")
            assert link["keepTime"] is not own_time, (uid, link["title"])


def test_a_variable_that_is_used_is_defined(files: dict[str, Any]) -> None:
    for uid, board in files.items():
        known = set(variables(board))
        texts = queries(board)
        texts += [
            target["legendFormat"]
            for panel in board["panels"]
            for target in panel.get("targets", [])
        ]
        texts += [str(variable.get("query", "")) for variable in variables(board).values()]
        # In a regular expression `$1` is a group, and only there.
        used = {name for text in texts for name in VARIABLE.findall(text) if not name.isdigit()}
        assert used <= known, uid
        assert known <= used, f"{uid} has a chooser that changes nothing"


def test_a_chooser_of_several_works_with_all_of_them(files: dict[str, Any]) -> None:
    for uid, board in files.items():
        for name, variable in variables(board).items():
            if not variable.get("multi"):
                continue
            assert variable["includeAll"] is True
            assert variable["allValue"] == ".+"
            for expr in queries(board):
                matchers = re.findall(rf'(=~|!~|!=|=)"([^"]*\${{?{name}\b[^"]*)"', expr)
                assert all(how == "=~" for how, _ in matchers), (uid, expr)


def test_a_variable_asks_only_for_what_comes_before_it(files: dict[str, Any]) -> None:
    for uid, board in files.items():
        seen: set[str] = set()
        for name, variable in variables(board).items():
            used = {v for v in VARIABLE.findall(str(variable["query"])) if not v.isdigit()}
            assert used <= seen, f"{uid}: ${name}"
            seen.add(name)


def test_every_refresh_is_among_those_its_dashboard_offers(files: dict[str, Any]) -> None:
    # Grafana sets no timer for any other.
    live = {uid: board for uid, board in files.items() if board["refresh"]}
    assert set(live) == UIDS - {"lab-compare"}
    # Each asks Prometheus on the machine that measures: only Lab is to show a toxic at once.
    assert {uid: board["refresh"] for uid, board in live.items()} == {
        uid: "2s" if uid == "lab" else "10s" for uid in live
    }
    for uid, board in live.items():
        assert board["refresh"] in board["timepicker"]["refresh_intervals"], uid


def test_the_least_step_is_the_query_s(files: dict[str, Any]) -> None:
    # The panel's "Min interval" does not count for $__rate_interval, nor does the reader look.
    for uid, board in files.items():
        for panel in board["panels"]:
            assert "interval" not in panel, (uid, panel["title"])


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
    assert board["refresh"] == ""
    assert board["annotations"]["list"] == []
    # Without a trial there is no shift of its own, and Prometheus 2.53 refuses `offset 0s`.
    shifts = [v["query"] for name, v in variables(board).items() if name.startswith("shift_")]
    assert all(query.endswith(" or vector(1))") for query in shifts)
    assert len(shifts) == 2
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            side = target["legendFormat"][0].lower()
            used = set(VARIABLE.findall(target["expr"]))
            assert used <= {f"{n}_{side}" for n in ("run", "trial", "server", "route", "shift")}
            series = len(re.findall(r"[a-z]\w*(?::\w+)*\{|lag_seconds:p99_6s ", target["expr"]))
            assert target["expr"].count(f"offset ${{shift_{side}}}s") == series, target["expr"]


def test_the_folder_is_the_one_that_is_provisioned(repo: Path) -> None:
    provisioned = yaml.safe_load(
        (repo / "grafana" / "provisioning" / "dashboards" / "lab.yml").read_text()
    )
    path = provisioned["providers"][0]["options"]["path"]
    grafana = yaml.safe_load((repo / "compose.yaml").read_text())["services"]["grafana"]
    assert f"./{FOLDER}:{path}:ro" in grafana["volumes"]
    home = grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (repo / FOLDER / Path(home).name).is_file()
    assert str(Path(home).parent) == path
