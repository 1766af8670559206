"""Toxics: the types Toxiproxy 2.12 knows, their attributes and the allowed values.

Pure: no I/O. Names are Toxiproxy's own
(https://github.com/Shopify/toxiproxy/blob/v2.12.0/README.md#toxics).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

HOUR_MS = 3_600_000
LARGEST = 2**31 - 1
STREAMS = ("downstream", "upstream")
DEFAULT_STREAM = "downstream"
DEFAULT_PROXY = "downstream"


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

    ``attributes`` are (name, value) pairs in Toxiproxy's units, ordered by name.
    ``toxicity`` is the share of *connections* (not of requests) it applies to, 0..1.
    """

    name: str
    type: str
    stream: str
    toxicity: float
    attributes: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        if not self.name or not self.type:
            raise ValueError("a toxic needs a name and a type")
        if self.stream not in STREAMS:
            raise ValueError(f"stream={self.stream!r}: allowed {', '.join(STREAMS)}")
        if not 0.0 <= self.toxicity <= 1.0:
            raise ValueError(f"toxicity={self.toxicity}: allowed 0..1")
        object.__setattr__(self, "attributes", tuple(sorted(self.attributes)))

    def attribute(self, name: str) -> int:
        """The value of an attribute; 0 where Toxiproxy leaves it out (its own default)."""
        return dict(self.attributes).get(name, 0)

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
        latency, jitter = self.attribute("latency"), self.attribute("jitter")
        return float(latency) if jitter <= latency else (latency + jitter) ** 2 / (4 * jitter)


@dataclass(frozen=True, slots=True)
class Proxy:
    """One proxy and the toxics in force on it; ``enabled`` False refuses connections."""

    name: str
    listen: str
    upstream: str
    enabled: bool
    toxics: tuple[Toxic, ...]


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
        return any(t.type == "latency" and t.attribute("jitter") for _, t in self.toxics)

    @property
    def unpredicted(self) -> tuple[str, ...]:
        """The toxics that change latency or answers in a way the sum above leaves out:
        ``proxy/toxic``, or ``proxy`` where the proxy is down."""
        down = [proxy.name for proxy in self.proxies if not proxy.enabled]
        other = [f"{p}/{t.name}" for p, t in self.toxics if t.added_latency_ms is None]
        return tuple(down + other)

    def proxy(self, name: str) -> Proxy | None:
        """The proxy of that name."""
        return next((proxy for proxy in self.proxies if proxy.name == name), None)


def parse_proxies(answer: object) -> ToxicsInForce:
    """Toxiproxy's ``GET /proxies`` as records, ordered by proxy and toxic name.

    Raises ValueError naming what is missing or of the wrong kind.
    """
    try:
        proxies = _mapping(answer)
        return ToxicsInForce(tuple(_parse_proxy(proxies[name]) for name in sorted(proxies)))
    except KeyError as failure:
        raise ValueError(f"{failure} is missing") from failure
    except TypeError as failure:
        raise ValueError(str(failure)) from failure


def _mapping(answer: object) -> Mapping[str, object]:
    if not isinstance(answer, Mapping):
        raise TypeError(f"{answer!r} is not an object")
    return answer


def _parse_proxy(answer: object) -> Proxy:
    fields = _mapping(answer)
    toxics = fields.get("toxics") or []
    if not isinstance(toxics, list):
        raise TypeError(f"{toxics!r} is not a list")
    return Proxy(
        name=str(fields["name"]),
        listen=str(fields["listen"]),
        upstream=str(fields["upstream"]),
        enabled=bool(fields["enabled"]),
        toxics=tuple(sorted(map(read_toxic, toxics), key=lambda toxic: toxic.name)),
    )


def read_toxic(answer: object) -> Toxic:
    """One toxic, from Toxiproxy's JSON. Raises KeyError, TypeError or ValueError."""
    fields = _mapping(answer)
    attributes = _mapping(fields["attributes"])
    return Toxic(
        name=str(fields["name"]),
        type=str(fields["type"]),
        stream=str(fields["stream"]),
        toxicity=float(str(fields["toxicity"])),
        attributes=tuple((name, int(str(value))) for name, value in attributes.items()),
    )


def units_of(toxic_type: str) -> Mapping[str, str]:
    """Attribute name to unit; empty for a type this release does not know."""
    return {attribute.name: attribute.unit for attribute in TOXIC_TYPES.get(toxic_type, ())}
