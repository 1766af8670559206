"""Toxics: the types Toxiproxy 2.12 knows, their attributes and the allowed values.

Pure: no I/O. Names are Toxiproxy's own
(https://github.com/Shopify/toxiproxy/blob/v2.12.0/README.md#toxics).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import replace
from dataclasses import dataclass
from types import MappingProxyType

from lab.errors import LabUnreachable

HOUR_MS = 3_600_000
LARGEST = 2**31 - 1
STREAMS = ("downstream", "upstream")
DEFAULT_STREAM = "downstream"
DEFAULT_PROXY = "downstream"
# Among names of toxics: the proxy itself, being up or down.
WHOLE_PROXY = ""


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of a toxic type: a whole number in ``unit``, within the limits, both
    included. ``default`` None means that it must be given."""

    name: str
    unit: str
    minimum: int = 0
    maximum: int = HOUR_MS
    default: int | None = None

    @property
    def allowed(self) -> str:
        """For messages: what the attribute may hold."""
        return f"a whole number {self.minimum}..{self.maximum} ({self.unit})"


TOXIC_TYPES: Mapping[str, tuple[Attribute, ...]] = MappingProxyType(
    {
        "latency": (Attribute("latency", "ms"), Attribute("jitter", "ms", default=0)),
        # Toxiproxy takes a rate of 0 as "no limit": it would be in force and do nothing.
        "bandwidth": (Attribute("rate", "KB/s", minimum=1, maximum=LARGEST),),
        "slow_close": (Attribute("delay", "ms"),),
        # 0: data stops and the connection stays open until the toxic is removed.
        "timeout": (Attribute("timeout", "ms"),),
        # While it waits to reset, Toxiproxy 2.12 does not listen to its API: removing it, and
        # then every other call, hangs until the wait is over.
        "reset_peer": (Attribute("timeout", "ms", maximum=10_000, default=0),),
        "slicer": (
            Attribute("average_size", "bytes", minimum=1, maximum=LARGEST),
            Attribute("size_variation", "bytes", maximum=LARGEST, default=0),
            Attribute("delay", "us", maximum=HOUR_MS * 1000, default=0),
        ),
        "limit_data": (Attribute("bytes", "bytes", maximum=LARGEST),),
    }
)


@dataclass(frozen=True, slots=True)
class Toxic:
    """One toxic as Toxiproxy reports it.

    ``attributes`` are in Toxiproxy's units, ordered by name.
    ``toxicity`` is the share of *connections* (not of requests) it applies to, 0..1.
    """

    name: str
    type: str
    stream: str
    toxicity: float
    attributes: Mapping[str, int]

    def __post_init__(self) -> None:
        if not self.name or not self.type:
            raise ValueError("a toxic needs a name and a type")
        if self.stream not in STREAMS:
            raise ValueError(f"stream={self.stream!r}: allowed {', '.join(STREAMS)}")
        if not 0.0 <= self.toxicity <= 1.0:
            raise ValueError(f"toxicity={self.toxicity}: allowed 0..1")
        object.__setattr__(self, "attributes", dict(sorted(self.attributes.items())))

    @property
    def added_latency_ms(self) -> float | None:
        """Mean milliseconds this toxic adds to a small message; None where that depends on
        the traffic (bandwidth, slicer), where the message is lost, or where the toxic is on some
        connections only: a closed load gets the sum of what each connection can have (N / mean R
        is less), and the quick ones answer more often.

        A latency toxic waits L + U(-J, J), never less than 0, once per message and
        direction. Its mean is L for J <= L, else the mean of the uniform distribution cut
        at zero, (L + J)^2 / 4J.
        """
        if self.type == "slow_close" or self.toxicity == 0:
            return 0.0
        if self.type != "latency" or self.toxicity < 1:
            return None
        # Toxiproxy leaves out what is 0, its own default.
        latency, jitter = (self.attributes.get(name, 0) for name in ("latency", "jitter"))
        if min(latency, jitter) < 0:  # Its API takes any number.
            return None
        return float(latency) if jitter <= latency else (latency + jitter) ** 2 / (4 * jitter)


# A toxic, or None without one; of a WHOLE_PROXY True if it is up.
ToxicValue = Toxic | bool | None


@dataclass(frozen=True, slots=True)
class Proxy:
    """One proxy and the toxics in force on it; ``enabled`` False refuses connections."""

    name: str
    listen: str
    upstream: str
    enabled: bool
    toxics: tuple[Toxic, ...] = ()

    @property
    def values(self) -> Mapping[str, ToxicValue]:
        return {WHOLE_PROXY: self.enabled, **{toxic.name: toxic for toxic in self.toxics}}

    def having(self, name: str, value: ToxicValue) -> Proxy:
        if isinstance(value, bool):
            return replace(self, enabled=value)
        others = (toxic for toxic in self.toxics if toxic.name != name)
        toxics = (*others, value) if value else others
        return replace(self, toxics=tuple(sorted(toxics, key=lambda toxic: toxic.name)))


@dataclass(frozen=True, slots=True)
class ToxicsInForce:
    """Every proxy with its toxics at one moment: what a trial records and a prediction uses."""

    proxies: tuple[Proxy, ...]

    @property
    def toxics(self) -> tuple[tuple[str, Toxic], ...]:
        """(proxy, toxic) of everything in force."""
        return tuple((proxy.name, toxic) for proxy in self.proxies for toxic in proxy.toxics)

    @property
    def added_latency_ms(self) -> float:
        """Mean milliseconds added to a round trip: the latency toxics of both streams.

        Toxics of other types are not in it; ``unpredicted`` names them."""
        return sum(toxic.added_latency_ms or 0.0 for _, toxic in self.toxics)

    @property
    def jittered(self) -> bool:
        """Whether a latency toxic adds another time to each message."""
        return any(t.type == "latency" and t.attributes.get("jitter") for _, t in self.toxics)

    @property
    def unpredicted(self) -> tuple[str, ...]:
        """The toxics that change latency or answers in a way the sum above leaves out:
        ``proxy/toxic``, or ``proxy`` where the proxy is down."""
        down = [proxy.name for proxy in self.proxies if not proxy.enabled]
        other = [f"{p}/{t.name}" for p, t in self.toxics if t.added_latency_ms is None]
        return tuple(down + other)

    def proxy(self, name: str) -> Proxy:
        """Raises LabUnreachable naming those there are."""
        for proxy in self.proxies:
            if proxy.name == name:
                return proxy
        known = ", ".join(proxy.name for proxy in self.proxies) or "none"
        raise LabUnreachable(f"proxy {name!r} does not exist: toxiproxy has {known}")


def ordered(proxies: Iterable[Proxy]) -> ToxicsInForce:
    """Proxies and their toxics by name."""
    return ToxicsInForce(
        tuple(
            replace(proxy, toxics=tuple(sorted(proxy.toxics, key=lambda toxic: toxic.name)))
            for proxy in sorted(proxies, key=lambda proxy: proxy.name)
        )
    )


def units_of(toxic_type: str) -> Mapping[str, str]:
    """Attribute name to unit; empty for a type this release does not know."""
    return {attribute.name: attribute.unit for attribute in TOXIC_TYPES.get(toxic_type, ())}
