"""Which dashboards there are, how they are called, and the way from each to the others."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as model

# Compare draws trials as if each began at this moment, so that its axis reads as time since
# the start. Far from any real sample, and not 1970: 0 is too often taken for "not set".
EPOCH_S = 946_684_800
FIRST_MINUTE = ("2000-01-01T00:00:00.000Z", "2000-01-01T00:01:00.000Z")
COMPARE_SPANS_S = MappingProxyType({"1 min": 60, "10 min": 600, "1 h": 3600})


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard; ``uid`` names its file and its address for good."""

    uid: str
    title: str
    tooltip: str


LAB = Board("lab", "Lab", "Load, latency from both sides, errors, toxics")
BOTTLENECK = Board("lab-bottleneck", "Bottleneck", "Every resource that a verdict can name")
COMPARE = Board("lab-compare", "Compare", "Two trials from their start")
JVM = Board("lab-jvm", "JVM", "Heap, collections, threads and compiler of the servers")
CONTAINERS = Board("lab-containers", "Containers", "CPU, memory and network of every service")
BOARDS = (LAB, BOTTLENECK, COMPARE, JVM, CONTAINERS)


# Where make publishes the agent unless LOADGEN_PORT says otherwise: Grafana expands no environment
# in a dashboard, so the link is fixed (docs/control-page.md says so).
CONTROL_PAGE = "http://localhost:9464/"


def links(here: Board) -> list[dashboard.DashboardLink]:
    """The links of ``here`` to the others. Time and variables go along, except to and from
    Compare, whose times are not those of the others."""
    found = []
    for there in BOARDS:
        if there is not here:
            along = COMPARE not in (here, there)
            link = _link(there.title, f"/d/{there.uid}", there.tooltip, "dashboard")
            found.append(link.keep_time(along).include_vars(along))
    if here is COMPARE:
        start_ms = EPOCH_S * 1000
        for name, seconds in COMPARE_SPANS_S.items():
            url = f"/d/{COMPARE.uid}?from={start_ms}&to={start_ms + seconds * 1000}"
            tooltip = f"Show the first {name} of both trials"
            found.append(_link(f"First {name}", url, tooltip, "bolt").include_vars(True))
    tooltip = "Toxics, knobs and benches, with sliders and buttons"
    control = _link("Control page", CONTROL_PAGE, tooltip, "external link").target_blank(True)
    return [*found, control]


def _link(title: str, url: str, tooltip: str, icon: str) -> dashboard.DashboardLink:
    return (
        dashboard.DashboardLink(title)
        .type(model.DashboardLinkType.LINK)
        .url(url)
        .tooltip(tooltip)
        .icon(icon)
    )
