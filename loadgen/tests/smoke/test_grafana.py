"""Grafana itself, where its image is: what is provisioned, who may change it, and the page.

Started by `.ci/smoke.sh` only where the image is present, after the smoke test's bench.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from browser.conftest import Browser, chromium

GRAFANA = "http://grafana:3000"
DASHBOARDS = Path(__file__).parents[3] / "grafana" / "dashboards"
SHOWN_S = 60.0


@pytest.fixture(scope="session")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


def boards() -> dict[str, dict[str, Any]]:
    """The checked-in dashboards by uid."""
    loaded = [json.loads(file.read_text()) for file in DASHBOARDS.glob("*.json")]
    return {board["uid"]: board for board in loaded}


def test_every_dashboard_is_provisioned_and_seen_without_a_login(client: httpx.Client) -> None:
    found = client.get(f"{GRAFANA}/api/search", params={"type": "dash-db"}).json()
    assert {one["uid"] for one in found} == set(boards())
    for uid, board in boards().items():
        answer = client.get(f"{GRAFANA}/api/dashboards/uid/{uid}").json()
        assert answer["meta"]["provisioned"], uid
        titles = [panel["title"] for panel in answer["dashboard"]["panels"]]
        assert titles == [panel["title"] for panel in board["panels"]], uid


def test_nothing_is_changed_without_the_password(client: httpx.Client) -> None:
    body = {"dashboard": {"title": "mine", "panels": []}, "overwrite": True}
    assert client.post(f"{GRAFANA}/api/dashboards/db", json=body).status_code in (401, 403)
    assert client.delete(f"{GRAFANA}/api/dashboards/uid/lab").status_code in (401, 403)


def test_the_page_shows_the_panels(window: Browser) -> None:
    titles = [panel["title"] for panel in boards()["lab"]["panels"] if panel["type"] != "row"]
    window.look(f"{GRAFANA}/d/lab?from=now-15m&to=now")
    until = time.monotonic() + SHOWN_S
    while time.monotonic() < until:
        text = str(window.ask("return document.body.innerText"))
        if titles[0] in text:
            break
        time.sleep(1)
    assert titles[0] in text
    assert "Datasource prometheus was not found" not in text
