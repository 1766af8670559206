"""Grafana itself, where its image is: what is provisioned, who may change it, and the pages.

Started by `.ci/smoke.sh` only where the image is present, after the smoke test's bench.
"""

import json
import os
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from support.browser import Browser, chromium
from support.repo import REPO
from support.stored import Cells, Window, eventually

GRAFANA = "http://grafana:3000"
# To those whom it answers it is this.
LOCAL = "http://localhost:3000"
DASHBOARDS = REPO / "grafana" / "dashboards"
SHOWN_S = 60.0
# Grafana asks only for what is on the screen: so high a screen shows all of a dashboard.
WIDE, HIGH = 1600, 9000


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    there = "--host-resolver-rules=MAP localhost grafana"
    with chromium(tmp_path_factory.mktemp("profile"), there) as browser:
        yield browser


@pytest.fixture(scope="session")
def client() -> Iterator[httpx.Client]:
    """It asks as the host does."""
    with httpx.Client(timeout=10, headers={"Host": "localhost:3000"}) as client:
        yield client


def boards() -> dict[str, dict[str, Any]]:
    """The checked-in dashboards by uid."""
    loaded = [json.loads(file.read_text()) for file in DASHBOARDS.glob("*.json")]
    return {board["uid"]: board for board in loaded}


def saved(client: httpx.Client, board: dict[str, Any], password: str) -> int:
    """The status that Grafana answers to who saves a dashboard; without a password as nobody."""
    body = {"dashboard": board, "overwrite": True}
    who = ("admin", password) if password else None
    return client.post(f"{GRAFANA}/api/dashboards/db", json=body, auth=who).status_code


def test_every_dashboard_is_provisioned_and_seen_without_a_login(client: httpx.Client) -> None:
    found = client.get(f"{GRAFANA}/api/search", params={"type": "dash-db"}).json()
    assert {one["uid"] for one in found} == set(boards())
    for uid, board in boards().items():
        answer = client.get(f"{GRAFANA}/api/dashboards/uid/{uid}").json()
        # Not `provisioned`: that is false for what may be edited (allowUiUpdates).
        assert answer["meta"]["provisionedExternalId"] == f"{uid}.json"
        titles = [panel["title"] for panel in answer["dashboard"]["panels"]]
        assert titles == [panel["title"] for panel in board["panels"]], uid


def test_who_knows_it_under_another_name_is_sent_to_localhost(client: httpx.Client) -> None:
    answer = client.get(f"{GRAFANA}/api/search", headers={"Host": "evil.example:3000"})
    assert answer.status_code == 301
    assert answer.headers["location"].startswith("http://localhost:")


def test_nothing_is_changed_without_the_password(client: httpx.Client) -> None:
    # Nobody set what Grafana would take by itself.
    for password in ("", "admin"):
        assert saved(client, {"title": "mine", "panels": []}, password) in (401, 403)
    assert client.delete(f"{GRAFANA}/api/dashboards/uid/lab").status_code in (401, 403)


def test_who_has_the_password_edits_a_dashboard(client: httpx.Client) -> None:
    password = os.environ["GRAFANA_ADMIN_PASSWORD"]
    url = f"{GRAFANA}/api/dashboards/uid/lab"
    before = client.get(url).json()["dashboard"]
    try:
        assert saved(client, before | {"description": "edited"}, password) == 200
        assert client.get(url).json()["dashboard"]["description"] == "edited"
    finally:
        saved(client, before, password)
    assert client.get(url).json()["dashboard"]["description"] == before["description"]


@pytest.mark.parametrize("uid", sorted(boards()))
def test_every_panel_has_lines(page: Browser, window: Window, rows: list[Cells], uid: str) -> None:
    board = boards()[uid]
    began_s, ended_s = window
    # Compare has times of its own, and opens with trials of the newest run.
    times = f"?from={began_s:.0f}000&to={ended_s:.0f}000"
    page.look(f"{LOCAL}/d/{uid}{'' if uid == 'lab-compare' else times}", WIDE)
    size = {"width": WIDE, "height": HIGH, "deviceScaleFactor": 1, "mobile": False}
    page.told("Emulation.setDeviceMetricsOverride", **size)
    # A service or a server of the run is in some line's name on every dashboard.
    titles = [panel["title"] for panel in board["panels"]]
    named = re.compile(rf"^(A )?{re.escape(rows[0]['server'])}\b", re.MULTILINE)

    def text() -> str:
        return str(page.ask("return document.body.innerText"))

    def is_drawn() -> bool:
        shown = text()
        return all(title in shown for title in titles) and named.search(shown) is not None

    eventually(is_drawn, SHOWN_S, f"all panels of {uid}, and a line of {rows[0]['server']}")
    eventually(lambda: "No data" not in text(), SHOWN_S, f"no panel of {uid} without data")
    assert "was not found" not in text()
