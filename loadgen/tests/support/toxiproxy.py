"""A Toxiproxy in memory, behaving as 2.12.0 does where the client depends on it."""

import json
import struct
from typing import Any

import httpx


class FakeToxiproxy(httpx.BaseTransport):
    """Answers like the real one: 409 for a name taken, an update that ignores type and stream, a
    reset that also enables proxies. ``keeps_toxics`` makes it deaf to removals."""

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
        if request.method != "GET":
            self.changes.append(f"{request.method} {request.url.path}")
        body = json.loads(request.read() or b"{}")
        match request.method, request.url.path.strip("/").split("/"):
            case "GET", _:
                pass
            case _, ["reset"]:
                if not self.keeps_toxics:
                    self.toxics.clear()
                self.enabled = True
            case _, ["proxies", "downstream"]:
                self.enabled = body["enabled"]
            case _, ["proxies", "downstream", "toxics"]:
                if body["name"] in self.toxics:
                    return httpx.Response(409, json={"error": "toxic already exists"})
                self.toxics[body["name"]] = body | {"toxicity": _float32(body["toxicity"])}
            case _, [*_, name] if name not in self.toxics:
                return httpx.Response(404, json={"error": "toxic not found"})
            case "DELETE", [*_, name]:
                del self.toxics[name]
            case _, [*_, name]:
                self.toxics[name].update(attributes=body["attributes"], toxicity=body["toxicity"])
        proxy = {"name": "downstream", "listen": "[::]:8666", "upstream": "downstream:8080"}
        proxy |= {"enabled": self.enabled, "toxics": list(self.toxics.values())}
        return httpx.Response(200, json={"downstream": proxy})


def _float32(value: float) -> float:
    """The shortest number that is the same in single precision, as Go writes it."""
    numbers = (float(f"{value:.{digits}g}") for digits in range(1, 10))
    return next(each for each in numbers if struct.pack("f", each) == struct.pack("f", value))
