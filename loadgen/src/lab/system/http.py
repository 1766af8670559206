"""The HTTP calls of all clients of the lab's parts, from any thread. Every call has a deadline.

A part that does not answer, or not as its contract says, is a LabUnreachable that names the part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from lab.errors import LabUnreachable
from lab.system.tokens import TokenAuth

DEADLINE_S = 5.0
# Of a counter that is read at the edges of a trial's window: late is worse than not at all.
COUNTER_DEADLINE_S = 2.0
# Toxiproxy refuses user agents that start with Mozilla/ (it guards against browsers).
USER_AGENT = "concurrency-lab"


class Http:
    """`transport` is the seam for tests (httpx.MockTransport); `raw` the client itself, for callers
    that judge an answer of any status. The parts of the lab get their tokens by the `secret`."""

    def __init__(self, transport: httpx.BaseTransport | None = None, secret: str = "") -> None:
        self.raw = httpx.Client(
            transport=transport,
            auth=TokenAuth(secret),
            timeout=DEADLINE_S,
            headers={"User-Agent": USER_AGENT},
            trust_env=False,
            # Only a service of the user's own speaks TLS, often with a certificate of its own
            # making. Nothing secret is sent to it.
            verify=False,  # noqa: S501
        )

    def close(self) -> None:
        """Close the connections."""
        self.raw.close()

    def ask(
        self,
        who: str,
        method: str,
        url: str,
        json: object = None,
        deadline_s: float = DEADLINE_S,
        content: str | None = None,
    ) -> httpx.Response:
        """The answer, whatever its status. The body is `json`, or `content` as it is. Raises
        LabUnreachable when there is none."""
        try:
            return self.raw.request(method, url, json=json, content=content, timeout=deadline_s)
        except httpx.HTTPError as failure:
            raise LabUnreachable(f"{who}: {url} does not answer: {reason(failure)}") from None

    def call(
        self,
        who: str,
        method: str,
        url: str,
        json: object = None,
        deadline_s: float = DEADLINE_S,
        content: str | None = None,
    ) -> httpx.Response:
        """As `ask`. Also raises LabUnreachable for an answer that is no success."""
        answer = self.ask(who, method, url, json, deadline_s, content)
        if not answer.is_success:
            raise LabUnreachable(f"{who}: {url} answers {answer.status_code}")
        return answer

    def get(self, who: str, url: str, deadline_s: float = DEADLINE_S) -> dict[str, Any]:
        """The JSON object that a GET returns. Raises LabUnreachable."""
        return json_object(who, self.call(who, "GET", url, deadline_s=deadline_s))

    def samples(
        self, who: str, url: str, *names: str, deadline_s: float = DEADLINE_S
    ) -> list[Sample]:
        """The samples of these names on a page of metrics. Raises LabUnreachable."""
        return samples(f"{who}: {url}", self.call(who, "GET", url, None, deadline_s).text, names)


def json_object(who: str, answer: httpx.Response) -> dict[str, Any]:
    """The JSON object of an answer. Raises LabUnreachable for anything else."""
    try:
        body = answer.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise LabUnreachable(f"{who}: {answer.url} does not answer with a JSON object")
    return body


def number(who: str, answer: Mapping[str, Any], name: str) -> float:
    """A number of an answer's JSON object. Raises LabUnreachable where it is none."""
    value = answer.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise LabUnreachable(f"{who}: its answer holds no {name}")
    return float(value)


def reason(failure: Exception) -> str:
    """Why a call failed; some failures of httpx have no text of their own."""
    return str(failure) or type(failure).__name__


def samples(page: str, text: str, names: tuple[str, ...]) -> list[Sample]:
    """The samples of these names in the text of a page of metrics; `page` names it for errors.
    Raises LabUnreachable.

    Only lines that may be wanted are parsed: a server's page of 1,200 lines takes 10 ms as a
    whole and 0.1 ms so, and it is read while the lab measures.
    """
    wanted = "".join(f"{line}\n" for line in text.splitlines() if line.startswith(names))
    try:
        families = text_string_to_metric_families(wanted)
        return [one for family in families for one in family.samples if one.name in names]
    except ValueError as failure:
        raise LabUnreachable(f"{page} is no page of metrics: {failure}") from None
