"""Toxiproxy's HTTP API: read the toxics in force, change them, and return the state read back."""

from urllib.parse import urlsplit

from msgspec.structs import asdict

from lab.errors import LabUnreachable
from lab.model import ToxicState
from lab.model.toxics import Proxy, Toxic, ToxicRequest, ToxicsInForce, ToxicValue, ordered
from lab.system.http import MOST_BYTES, Http, NoAnswer, Part

# Descriptors: open, and the limit.
OPEN, MOST = "process_open_fds", "process_max_fds"
# Longer than the longest a reset_peer toxic can keep the API waiting (see model.TOXIC_TYPES).
TIMEOUT_S = 15.0


class Toxiproxy(Part):
    """Every method raises LabUnreachable. One thread."""

    def __init__(self, http: Http) -> None:
        super().__init__(http, "toxiproxy", "http://toxiproxy:8475")

    def in_force(self, deadline_s: float = TIMEOUT_S) -> ToxicsInForce:
        answer = self.call("GET", "/proxies", None, deadline_s)
        return ordered(self.decoded(answer, dict[str, Proxy]).values())

    def apply(self, request: ToxicRequest) -> Proxy:
        """Raises WordError if a change names a word that the toxic in force does not have."""
        value = request.value_on(self.in_force().proxy(request.proxy))
        return self.write(request.proxy, request.name, value)

    def write(self, proxy: str, name: str, wanted: ToxicValue) -> Proxy:
        """Have this toxic, or none of its name; of WHOLE_PROXY have the proxy up or down: down
        refuses connections and cuts the open ones."""
        present = self.in_force().proxy(proxy).values.get(name)
        if isinstance(wanted, bool):
            if present != wanted:
                self._change("POST", f"/proxies/{proxy}", {"enabled": wanted})
        elif present != wanted:
            path = f"/proxies/{proxy}/toxics"
            # Toxiproxy would silently ignore another type or stream.
            updates = (
                isinstance(present, Toxic)
                and wanted is not None
                and (present.type, present.stream) == (wanted.type, wanted.stream)
            )
            if present and not updates:
                self._change("DELETE", f"{path}/{name}")
            if wanted:
                self._change("POST", f"{path}/{name}" if updates else path, asdict(wanted))
        after = self.in_force().proxy(proxy)
        if after.values.get(name) != wanted:
            problem = f"{proxy}/{name} is {after.values.get(name)} after a change to {wanted}"
            raise LabUnreachable(problem, self.name)
        return after

    def reset(self) -> ToxicsInForce:
        self._change("POST", "/reset")
        after = self.in_force()
        left = [f"{proxy}/{toxic.name}" for proxy, toxic in after.toxics]
        left += [f"{proxy.name} (down)" for proxy in after.proxies if not proxy.enabled]
        if left:
            raise LabUnreachable(f"after the reset still in force: {', '.join(left)}", self.name)
        return after

    def files(self) -> tuple[float, float]:
        """Open descriptors, and their limit."""
        page = self.metrics(OPEN, MOST, deadline_s=TIMEOUT_S)
        return page.value(OPEN), page.value(MOST)

    def answers(self, deadline_s: float) -> bool:
        """True if every proxy that is up gives any answer in time."""
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
    """The toxics in force, as a trial records them."""
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
