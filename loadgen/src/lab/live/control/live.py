"""The live numbers of every server, from Prometheus, in one query."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lab.errors import LabUnreachable
from lab.system.prometheus import Prometheus

# By server, then by name of EXPRESSIONS.
Numbers = Mapping[str, Mapping[str, float]]
DEADLINE_S = 2.0
_PHASE = "server_route_phase:lab_http_request_seconds:p95_5s"
_CLIENT = "server_route_source_outcome:lab_client_requests:rate5s"
_ALL = "server_route:lab_http_requests:rate5s"
_OUTCOME = "server_route_outcome:lab_http_requests:rate5s"
_CLIENT_P95 = "server_route_source_since:lab_client_request_seconds:p95_5s"
# A restarted Prometheus shows samples of the last minutes as current. An idle server is scraped
# every 15 s.
OLD_S, OLD_SCRAPE_S = 10, 35


def _now(series: str, old_s: int = OLD_S) -> str:
    return f"({series} and timestamp({series}) > time() - {old_s})"


# By name on the page: an expression with one series per server (prometheus/rules).
EXPRESSIONS: Mapping[str, str] = {
    # In an open load that from when requests were due, which is never less than the other.
    "client_p95_s": f"max by (server) ({_now(_CLIENT_P95)})",
    "client_rps": f"sum by (server) ({_now(_CLIENT + '{source="load"}')})",
    "client_errors_rps": f"sum by (server) ({_now(_CLIENT + '{source="load",outcome!="ok"}')})",
    "server_p95_s": f"max by (server) ({_now(_PHASE + '{phase="total"}')})",
    "queue_p95_s": f"max by (server) ({_now(_PHASE + '{phase="queue"}')})",
    "service_p95_s": f"max by (server) ({_now(_PHASE + '{phase="service"}')})",
    "rps": f"sum by (server) ({_now(_ALL)})",
    "errors_rps": f"sum by (server) ({_now(_OUTCOME + '{outcome!="ok"}')})",
    "in_flight": f"sum by (server) ({_now('lab_http_requests_in_flight', OLD_SCRAPE_S)})",
}
QUERY = " or ".join(
    f'label_replace({expression}, "is", "{name}", "", "")'
    for name, expression in EXPRESSIONS.items()
)


def read_numbers(prometheus: Prometheus) -> tuple[Numbers, str | None]:
    """The numbers, or the problem."""
    numbers: dict[str, dict[str, float]] = {}
    try:
        for labels, value in prometheus.values(QUERY, DEADLINE_S):
            if math.isfinite(value):
                numbers.setdefault(labels.get("server", ""), {})[labels["is"]] = value
    except LabUnreachable as failure:
        return {}, str(failure)
    return numbers, None
