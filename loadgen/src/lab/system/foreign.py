"""Services under test that are not the lab's own (foreign), by the name of their host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Foreign:
    """Where such a service is and the route it is asked on. `exporter`: a JMX exporter answers on
    its host; `scraped`: Prometheus has that exporter in its list."""

    url: str
    route: str
    exporter: bool
    scraped: bool


# A service that is not in here is a server of the lab.
ForeignServices = Mapping[str, Foreign]
