"""A Toxiproxy in memory, behaving as 2.12.0 does where the client depends on it."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest


class FakeToxiproxy(httpx.BaseTransport):
    """Answers like the real one: 409 for a name taken, an update that ignores type and
    stream, a reset that also enables proxies. ``keeps_toxics`` makes it deaf to removals."""

    def __init__(self) -> None:
        self.toxics: dict[str, dict[str, Any]] = {}
        self.enabled = True
        self.keeps_toxics = False
        self.user_agents: set[str] = set()
        self.changes: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.user_agents.add(request.headers["user-agent"])
        if request.url.host == "loadgen":
            since = "2025-06-01T12:00:00+00:00"
            changes = [{"proxy": "downstream", "toxic": "latency", "since": since}]
            first_look = "2025-06-01T11:00:00+00:00"
            return httpx.Response(200, json={"changes": changes, "first_look": first_look})
        body = json.loads(request.read() or b"{}")
        parts = [part for part in request.url.path.split("/") if part]
        if request.method != "GET":
            self.changes.append(f"{request.method} {request.url.path}")
        return self._answer(request.method, parts, body)

    def _answer(self, method: str, parts: list[str], body: dict[str, Any]) -> httpx.Response:
        if parts == ["proxies"]:
            return httpx.Response(200, json={"downstream": self._proxy()})
        if parts == ["reset"]:
            if not self.keeps_toxics:
                self.toxics.clear()
            self.enabled = True
            return httpx.Response(204)
        if parts == ["proxies", "downstream"]:
            self.enabled = body["enabled"]
            return httpx.Response(200, json=self._proxy())
        if parts == ["proxies", "downstream", "toxics"]:
            if body["name"] in self.toxics:
                return httpx.Response(409, json={"error": "toxic already exists"})
            self.toxics[body["name"]] = body
            return httpx.Response(200, json=body)
        name = parts[3]
        if method == "DELETE":
            del self.toxics[name]
            return httpx.Response(204)
        self.toxics[name] |= {"attributes": body["attributes"], "toxicity": body["toxicity"]}
        return httpx.Response(200, json=self.toxics[name])

    def _proxy(self) -> dict[str, Any]:
        return {
            "name": "downstream",
            "listen": "[::]:8666",
            "upstream": "downstream:8080",
            "enabled": self.enabled,
            "toxics": list(self.toxics.values()),
        }


@pytest.fixture
def toxiproxy() -> FakeToxiproxy:
    return FakeToxiproxy()
