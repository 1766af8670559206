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
    found = [_link(here, there) for there in BOARDS if there is not here]
    if here is COMPARE:
        found += [_span(name, seconds) for name, seconds in COMPARE_SPANS_S.items()]
    return [*found, _control_page()]


def _control_page() -> dashboard.DashboardLink:
    return (
        dashboard.DashboardLink("Control page")
        .type(model.DashboardLinkType.LINK)
        .url(CONTROL_PAGE)
        .tooltip("Toxics, knobs and benches, with sliders and buttons")
        .icon("external link")
        .target_blank(True)
    )


def _link(here: Board, there: Board) -> dashboard.DashboardLink:
    own_time = COMPARE in (here, there)
    return (
        dashboard.DashboardLink(there.title)
        .type(model.DashboardLinkType.LINK)
        .url(f"/d/{there.uid}")
        .tooltip(there.tooltip)
        .icon("dashboard")
        .keep_time(not own_time)
        .include_vars(not own_time)
    )


def _span(name: str, seconds: int) -> dashboard.DashboardLink:
    start_ms = EPOCH_S * 1000
    return (
        dashboard.DashboardLink(f"First {name}")
        .type(model.DashboardLinkType.LINK)
        .url(f"/d/{COMPARE.uid}?from={start_ms}&to={start_ms + seconds * 1000}")
        .tooltip(f"Show the first {name} of both trials")
        .icon("bolt")
        .include_vars(True)
    )
