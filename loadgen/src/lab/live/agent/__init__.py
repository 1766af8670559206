"""The long-lived agent of the lab: live client-side latency, trial marks, toxics in force."""

from __future__ import annotations

from lab.live.agent.service import run

__all__ = ["run"]
