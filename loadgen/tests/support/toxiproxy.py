"""A Toxiproxy in memory, behaving as 2.12.0 does where the client depends on it."""

import json
import struct
from typing import Any

import httpx


class FakeToxiproxy(httpx.BaseTransport):
    """Answers like the real one: 409 for a name taken, an update that ignores type and
    stream, a reset that also enables proxies. ``keeps_toxics`` makes it deaf to removals."""

    def __init__(self) -> None:
        self.toxics: dict[str, dict[str, Any]] = {}
        self.enabled = True
        self.keeps_toxics = False
        self.user_agents: set[str] = set()
        # What the agent saw change besides the toxic, and each time it was asked, what it saw.
        self.seen: dict[str, str] = {}
        self.looks: list[list[str]] = []
        self.changes: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.user_agents.add(request.headers["user-agent"])
        if request.url.host == "loadgen":
            self.looks.append(list(self.toxics))
            seen = {"latency": "12:00:00", **self.seen}
            changes = [[f"2025-06-01T{at}Z", "downstream", toxic] for toxic, at in seen.items()]
            watched = ["2025-06-01T11:00:00Z", "2025-06-01T13:00:00Z"]
            answer = {"answers": True, "watched": watched, "history": changes}
            return httpx.Response(200, json=answer)
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
            self.toxics[body["name"]] = body | {"toxicity": _float32(body["toxicity"])}
            return httpx.Response(200, json=body)
        name = parts[3]
        if method == "DELETE":
            del self.toxics[name]
            return httpx.Response(204)
        self.toxics[name] |= {"attributes": body["attributes"], "toxicity": body["toxicity"]}
        return httpx.Response(200, json=self.toxics[name])

    def _proxy(self) -> dict[str, Any]:
        proxy = {"name": "downstream", "listen": "[::]:8666", "upstream": "downstream:8080"}
        return {**proxy, "enabled": self.enabled, "toxics": list(self.toxics.values())}


def _float32(value: float) -> float:
    """The shortest number that is the same in single precision, as Go writes it."""
    numbers = (float(f"{value:.{digits}g}") for digits in range(1, 10))
    return next(one for one in numbers if struct.pack("f", one) == struct.pack("f", value))
