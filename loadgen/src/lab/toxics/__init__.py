"""Toxics: what Toxiproxy can do to the way to the downstream, and what it does now.

The verbs are ``run``; a trial records ``read_in_force()``, whose ``added_latency_ms`` a
prediction uses.
"""

from __future__ import annotations

from lab.toxics.client import Toxiproxy
from lab.toxics.commands import run
from lab.toxics.model import Proxy, Toxic, ToxicsInForce

__all__ = ["Proxy", "Toxic", "ToxicsInForce", "Toxiproxy", "read_in_force", "run"]


def read_in_force(url: str) -> ToxicsInForce:
    """The toxics in force now at the Toxiproxy of ``url``. Raises LabUnreachable."""
    with Toxiproxy(url) as toxiproxy:
        return toxiproxy.in_force()
