"""The dashboard **Bottleneck**: every resource that a verdict can name, each with what is used
of it, what it allows, and what waits for it."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from lab_dashboards.boards import BOTTLENECK
from lab_dashboards.parts import finish, new_dashboard, toxic_marks, trial_marks
from lab_dashboards.path_resources import around, behind, calls
from lab_dashboards.server_resources import cpu_and_memory, sockets, threads
from lab_dashboards.variables import server_variable


def bottleneck() -> Dashboard:
    """Build it."""
    board = new_dashboard(
        BOTTLENECK,
        "Utilisation, saturation and errors of every resource between the load and the "
        "downstream. Look for the one that is at its limit (dashed) while others have room, "
        "and for what queues in front of it.",
    ).with_variable(server_variable())
    rows = {
        "Threads": threads(),
        "CPU and memory of the server": cpu_and_memory(),
        "Sockets and files": sockets(),
        "Calls of the downstream": calls(),
        "Toxiproxy and downstream": behind(),
        "Generator and host": around(),
    }
    return finish(board, rows, trial_marks(), toxic_marks())
