"""The effect of a request on the toxics in force. Pure."""

from __future__ import annotations

import copy

from lab.errors import LabUnreachable
from lab.model.toxic_words import Change, Enable, Put, Remove, ToxicRequest
from lab.model.toxics import Proxy, Toxic, ToxicsInForce

# Among names of toxics: the proxy itself, being up or down.
WHOLE_PROXY = ""


def proxy_of(in_force: ToxicsInForce, name: str) -> Proxy:
    """The proxy of that name. Raises LabUnreachable naming those there are."""
    proxy = in_force.proxy(name)
    if proxy is None:
        known = ", ".join(proxy.name for proxy in in_force.proxies) or "none"
        raise LabUnreachable(f"proxy {name!r} does not exist: toxiproxy has {known}")
    return proxy


def toxic_of(proxy: Proxy, name: str) -> Toxic:
    """The toxic of that name. Raises LabUnreachable naming those in force."""
    toxic = proxy.toxic(name)
    if toxic is None:
        present = ", ".join(one.name for one in proxy.toxics) or "none"
        raise LabUnreachable(
            f"toxic {name!r} is not in force on {proxy.name}: in force are {present}"
        )
    return toxic


def concerns(request: ToxicRequest) -> tuple[str, str]:
    """(proxy, toxic or WHOLE_PROXY) that a request changes."""
    match request:
        case Put(proxy, toxic):
            return proxy, toxic.name
        case Change(proxy, name) | Remove(proxy, name):
            return proxy, name
        case Enable(proxy):
            return proxy, WHOLE_PROXY


def applied(in_force: ToxicsInForce, request: ToxicRequest) -> ToxicsInForce:
    """The toxics in force after a request. Raises LabUnreachable, as the real one would, for a
    proxy or toxic that is not there, WordError for a word its type does not have."""
    proxy = proxy_of(in_force, request.proxy)
    toxics = {toxic.name: toxic for toxic in proxy.toxics}
    match request:
        case Put(_, toxic):
            toxics[toxic.name] = toxic
        case Change(_, name):
            toxics[name] = request.of(toxic_of(proxy, name)).toxic
        case Remove(_, name):
            del toxics[toxic_of(proxy, name).name]
        case Enable(_, enabled):
            proxy = copy.replace(proxy, enabled=enabled)
    ordered = tuple(toxics[name] for name in sorted(toxics))
    proxy = copy.replace(proxy, toxics=ordered)
    return ToxicsInForce(
        tuple(proxy if one.name == proxy.name else one for one in in_force.proxies)
    )
