"""Toxiproxy's HTTP API: read what is in force, change it, read it back.

Each change returns the state read back. A toxic is in force when Toxiproxy says so, not when it
was asked for.
"""

from urllib.parse import urlsplit

from lab.errors import LabUnreachable
from lab.model import ToxicState
from lab.model.toxics import (
    WHOLE_PROXY,
    Proxy,
    Toxic,
    ToxicRequest,
    ToxicsInForce,
    applied,
    concerns,
    ordered,
    proxy_of,
)
from lab.system.http import MOST_BYTES, Http, NoAnswer, Part

# Descriptors that it has open, and may have.
OPEN, MOST = "process_open_fds", "process_max_fds"
# Longer than the longest a reset_peer toxic can keep the API waiting (see model.TOXIC_TYPES).
TIMEOUT_S = 15.0


class Toxiproxy(Part):
    """Every method raises LabUnreachable. One thread."""

    def __init__(self, http: Http, url: str) -> None:
        super().__init__(http, "toxiproxy", url)

    def in_force(self, deadline_s: float = TIMEOUT_S) -> ToxicsInForce:
        answer = self.call("GET", "/proxies", None, deadline_s)
        return ordered(self.decoded(answer, dict[str, Proxy]).values())

    def apply(self, request: ToxicRequest) -> Proxy:
        """Do what was asked for. Raises WordError if a change names a word that the toxic in force
        does not have."""
        name, toxic = concerns(request)
        proxy = proxy_of(applied(self.in_force(), request), name)
        wanted = proxy.enabled if toxic == WHOLE_PROXY else proxy.toxic(toxic)
        return self.write(name, toxic, wanted)

    def write(self, proxy_name: str, name: str, wanted: Toxic | bool | None) -> Proxy:
        """Have this toxic, or none of its name (None); of WHOLE_PROXY have the proxy up or down:
        down refuses connections and cuts the open ones. A change of a toxic's type or stream
        replaces it, since Toxiproxy would ignore it silently."""
        path = f"/proxies/{proxy_name}"
        before = proxy_of(self.in_force(), proxy_name)
        present = before.enabled if name == WHOLE_PROXY else before.toxic(name)
        if isinstance(wanted, bool):
            if present != wanted:
                self._change("POST", path, {"enabled": wanted})
        elif present != wanted:
            self._replace(f"{path}/toxics", before.toxic(name), wanted)
        after = proxy_of(self.in_force(), proxy_name)
        has = after.enabled if name == WHOLE_PROXY else after.toxic(name)
        if has != wanted:
            problem = f"{proxy_name}/{name} is {has} after a change to {wanted}"
            raise LabUnreachable(problem, self.name)
        return after

    def _replace(self, path: str, present: Toxic | None, wanted: Toxic | None) -> None:
        kinds = {(toxic.type, toxic.stream) for toxic in (present, wanted) if toxic}
        updates = present is not None and wanted is not None and len(kinds) == 1
        if present is not None and not updates:
            self._change("DELETE", f"{path}/{present.name}")
        if wanted is not None:
            values = {"attributes": wanted.attributes, "toxicity": wanted.toxicity}
            named = {"name": wanted.name, "type": wanted.type, "stream": wanted.stream}
            if updates:
                self._change("POST", f"{path}/{wanted.name}", values)
            else:
                self._change("POST", path, {**named, **values})

    def reset(self) -> ToxicsInForce:
        self._change("POST", "/reset")
        after = self.in_force()
        left = [f"{proxy}/{toxic.name}" for proxy, toxic in after.toxics]
        left += [f"{proxy.name} (down)" for proxy in after.proxies if not proxy.enabled]
        if left:
            raise LabUnreachable(f"after the reset still in force: {', '.join(left)}", self.name)
        return after

    def files(self) -> tuple[float, float]:
        """How many descriptors it has open, and how many it may have."""
        samples = self.samples("/metrics", OPEN, MOST, deadline_s=TIMEOUT_S)
        values = {sample.name: sample.value for sample in samples}
        if len(values) < 2 or not values[MOST]:
            raise LabUnreachable(f"{self.url}/metrics has no {OPEN} and {MOST}", self.name)
        return values[OPEN], values[MOST]

    def answers(self, deadline_s: float) -> bool:
        """True if every proxy that is up answers a request in time, whatever the answer is. Raises
        LabUnreachable if Toxiproxy itself does not tell which proxies there are."""
        host, closed = urlsplit(self.url).hostname, {"Connection": "close"}
        for proxy in self.in_force().proxies:
            url = f"http://{host}:{proxy.listen.rpartition(':')[2]}/"
            try:
                if proxy.enabled:
                    self._http.ask(proxy.name, "GET", url, deadline_s, MOST_BYTES, headers=closed)
            except NoAnswer:
                return False
        return True

    def _change(self, method: str, path: str, body: object = None) -> None:
        self.call(method, path, body, TIMEOUT_S)


def toxic_state(in_force: ToxicsInForce) -> ToxicState:
    """Toxiproxy's records as the part of them that a trial depends on."""
    names = []
    for proxy, toxic in in_force.toxics:
        values = " ".join(f"{name}={value}" for name, value in toxic.attributes.items())
        names.append(
            f"{proxy}/{toxic.name} {toxic.type} {values} stream={toxic.stream} "
            f"toxicity={toxic.toxicity:g}"
        )
    names += [f"{proxy.name} down" for proxy in in_force.proxies if not proxy.enabled]
    return ToxicState(
        in_force=tuple(sorted(names)),
        added_latency_ms=in_force.added_latency_ms,
        unpredicted=in_force.unpredicted,
        jittered=in_force.jittered,
    )
