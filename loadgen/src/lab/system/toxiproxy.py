"""Toxiproxy's HTTP API: read what is in force, change it, read it back.

Each change returns the state read back. A toxic is in force when Toxiproxy says so, not when it
was asked for.
"""

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from lab.errors import LabUnreachable
from lab.model import ToxicState
from lab.model.toxic_script import WHOLE_PROXY, proxy_of, toxic_of
from lab.model.toxic_words import Change, Enable, Put, Remove, ToxicRequest
from lab.model.toxics import Proxy, Toxic, ToxicsInForce, parse_proxies
from lab.system.http import Answer, Http, NoAnswer, samples

# Descriptors that it has open, and may have.
_DESCRIPTORS = ("process_open_fds", "process_max_fds")
# Longer than the longest a reset_peer toxic can keep the API waiting (see model.TOXIC_TYPES).
TIMEOUT_S = 15.0


class Toxiproxy:
    """The Toxiproxy at ``url``. One thread."""

    def __init__(self, http: Http, url: str) -> None:
        self._http = http
        self._url = url.rstrip("/")

    def in_force(self) -> ToxicsInForce:
        """Every proxy and its toxics, now. Raises LabUnreachable."""
        answer = self._ask("GET", "/proxies")
        try:
            return parse_proxies(answer.json())
        except ValueError as failure:
            raise LabUnreachable(
                f"toxiproxy at {self._url}: cannot read its proxies: {failure}"
            ) from failure

    def proxy(self, name: str) -> Proxy:
        """One proxy. Raises LabUnreachable, also for a name that is not there."""
        return proxy_of(self.in_force(), name)

    def apply(self, request: ToxicRequest) -> Proxy:
        """Do what was asked for; returns the proxy as read back. Raises LabUnreachable, and
        WordError where a change names a word that the toxic in force does not have."""
        match request:
            case Put(proxy, toxic):
                return self.put(proxy, toxic)
            case Change(proxy, name):
                return self.put(proxy, request.of(toxic_of(self.proxy(proxy), name)).toxic)
            case Remove(proxy, name):
                return self.remove(proxy, name)
            case Enable(proxy, enabled):
                return self.enable(proxy, enabled)

    def put(self, proxy_name: str, toxic: Toxic) -> Proxy:
        """Create the toxic, or make the one of that name equal to it; returns the proxy as
        read back. A change of type or stream replaces the toxic, since Toxiproxy would
        ignore it silently. Raises LabUnreachable, also when the read-back differs."""
        present = self.proxy(proxy_name).toxic(toxic.name)
        path = f"/proxies/{proxy_name}/toxics"
        change: dict[str, object] = {
            "attributes": toxic.attributes,
            "toxicity": toxic.toxicity,
        }
        if present is not None and (present.type, present.stream) == (toxic.type, toxic.stream):
            self._ask("POST", f"{path}/{toxic.name}", change)
        else:
            if present is not None:
                self._ask("DELETE", f"{path}/{toxic.name}")
            identity = {"name": toxic.name, "type": toxic.type, "stream": toxic.stream}
            self._ask("POST", path, change | identity)
        after = self.proxy(proxy_name)
        if toxic not in after.toxics:
            raise LabUnreachable(f"toxiproxy did not take {toxic}: in force is {after.toxics}")
        return after

    def remove(self, proxy_name: str, name: str) -> Proxy:
        """Remove one toxic; returns the proxy as read back. Raises LabUnreachable, also for
        a toxic that is not there."""
        toxic_of(self.proxy(proxy_name), name)
        self._ask("DELETE", f"/proxies/{proxy_name}/toxics/{name}")
        return self.proxy(proxy_name)

    def enable(self, proxy_name: str, enabled: bool) -> Proxy:
        """Bring the proxy up, or down: down refuses connections and cuts the open ones.
        Returns the proxy as read back. Raises LabUnreachable."""
        before = self.proxy(proxy_name)
        if before.enabled != enabled:
            self._ask("POST", f"/proxies/{proxy_name}", {"enabled": enabled})
        after = self.proxy(proxy_name)
        if after.enabled != enabled:
            raise LabUnreachable(f"proxy {proxy_name} did not change to enabled={enabled}")
        return after

    def reset(self) -> ToxicsInForce:
        """Remove every toxic and bring every proxy up; returns the read-back. Raises
        LabUnreachable when anything is left."""
        self._ask("POST", "/reset")
        after = self.in_force()
        left = [f"{proxy}/{toxic.name}" for proxy, toxic in after.toxics]
        left += [f"{proxy.name} (down)" for proxy in after.proxies if not proxy.enabled]
        if left:
            raise LabUnreachable(f"after the reset still in force: {', '.join(left)}")
        return after

    def restore(self, before: ToxicsInForce, touched: Iterable[tuple[str, str]]) -> ToxicsInForce:
        """Have each (proxy, toxic or WHOLE_PROXY) of ``touched`` as it was ``before``, and
        leave all others alone; returns the read-back. Raises LabUnreachable."""
        for proxy_name, name in touched:
            was, now = proxy_of(before, proxy_name), self.proxy(proxy_name)
            if name == WHOLE_PROXY:
                self.enable(proxy_name, was.enabled)
                continue
            old, present = was.toxic(name), now.toxic(name)
            if old is None and present is not None:
                self.remove(proxy_name, name)
            elif old is not None and old != present:
                self.put(proxy_name, old)
        return self.in_force()

    def files(self) -> tuple[float, float]:
        """How many descriptors it has open, and how many it may have. Raises LabUnreachable."""
        text = self._ask("GET", "/metrics").text
        page = f"{self._url}/metrics"
        found = samples("toxiproxy", page, text, _DESCRIPTORS)
        known = {one.name: one.value for one in found}
        if len(known) < 2 or not known["process_max_fds"]:
            raise LabUnreachable(f"toxiproxy: {page} does not tell its descriptors")
        return known["process_open_fds"], known["process_max_fds"]

    def answers(self, deadline_s: float) -> bool:
        """Whether every proxy that is up answers a request in time, whatever the answer is. Raises
        LabUnreachable when Toxiproxy itself does not tell which proxies there are."""
        host = urlsplit(self._url).hostname
        for proxy in self.in_force().proxies:
            port = proxy.listen.rpartition(":")[2]
            try:
                if proxy.enabled:
                    url, closed = f"http://{host}:{port}/", {"Connection": "close"}
                    with self._http.stream("GET", url, deadline_s, headers=closed):
                        pass
            except NoAnswer:
                return False
        return True

    def _ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Answer:
        answer = self._http.ask("toxiproxy", method, self._url + path, body, TIMEOUT_S)
        if answer.is_success:
            return answer
        raise LabUnreachable(
            f"toxiproxy refused {method} {path}: {answer.status_code} {answer.text.strip()}"
        )


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
