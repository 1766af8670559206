"""Asks a service under test on its traffic port, as its clients do."""

from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from lab.errors import LabUnreachable
from lab.model.routes import THIS_MACHINE
from lab.system.http import Answer, Http, NoAnswer

PORT = 8080
# A route's first answer on a cold JVM, through a delay and toxics.
ROUTE_DEADLINE_S = 30.0
# A foreign service's first answer may be a stream that never ends: no more is read of it.
BODY_DEADLINE_S = 10.0
BODY_BYTES = 1 << 20
MODEL_HEADER = "Lab-Model"
# The statuses of a service that has no such route for GET.
NOT_SERVED = (404, 405)


@dataclass(frozen=True, slots=True)
class Foreign:
    """A service under test that is not the lab's own. `exporter`: a JMX exporter answers on its
    host; `scraped`: Prometheus has that exporter in its list."""

    url: str
    route: str
    exporter: bool
    scraped: bool


# By the name of their host. A service that is not in here is a server of the lab.
ForeignServices = Mapping[str, Foreign]


class Traffic:
    """The traffic ports of all services."""

    def __init__(self, http: Http, foreign: ForeignServices) -> None:
        self._http = http
        self._foreign = foreign

    def url(self, server: str, route: str) -> str:
        foreign = self._foreign.get(server)
        return f"{foreign.url if foreign else f'http://{server}:{PORT}'}{route}"

    def healthy(self, server: str) -> None:
        """Raises LabUnreachable unless the server's traffic port answers, as itself."""
        url = self.url(server, "/health")
        _require_model(server, self._http.call(server, "GET", url))

    def answers(self, server: str, deadline_s: float) -> bool:
        """True if a foreign service begins to answer its route in time, with whatever status."""
        url = self.url(server, self._foreign[server].route)
        try:
            with self._http.stream("GET", url, deadline_s):
                pass
        except NoAnswer as failure:
            return not failure.late
        return True

    def ready(self, server: str) -> None:
        """Raises LabUnreachable unless a foreign service serves its route, with no error of its
        own: an answer of 5xx is that of one that still starts."""
        url = self.url(server, self._foreign[server].route)
        try:
            with self._http.stream("GET", url, ROUTE_DEADLINE_S) as answer:
                status = answer.status_code
        except NoAnswer as failure:
            raise LabUnreachable(f"{failure}", server) from None
        if status in NOT_SERVED or status >= 500:
            raise LabUnreachable(f"{url} answers {status}", server)

    def check_route(self, server: str, route: str) -> str | None:
        """Send one request: the route must be served, and by the right model.

        Returns what is wrong with the answer where toxics may be the reason (a bad status),
        None when all is well. Raises LabUnreachable when it is not that server's route.
        """
        if server in self._foreign:
            return self._check_foreign(server, route)
        url = self.url(server, route)
        answer = self._http.ask(server, "GET", url, deadline_s=ROUTE_DEADLINE_S)
        _require_model(server, answer)
        if answer.status_code in NOT_SERVED:
            raise LabUnreachable(f"{route} answers {answer.status_code}: not served", server)
        return None if answer.status_code == 200 else f"{route} answers {answer.status_code}"

    def _check_foreign(self, server: str, route: str) -> str | None:
        """As `check_route`, but any success counts: the answer does not name its service."""
        url = self.url(server, route)
        try:
            with self._http.stream("GET", url, ROUTE_DEADLINE_S) as answer:
                ended = self._ends(answer)
        except NoAnswer as failure:
            hint = ""
            if server == THIS_MACHINE:
                hint = (
                    "; on this machine it must listen on an address that containers can reach "
                    "(0.0.0.0, or that of docker0), not only on 127.0.0.1"
                )
            raise LabUnreachable(f"{failure}{hint}") from None
        if answer.status_code in NOT_SERVED:
            raise LabUnreachable(f"{url} answers {answer.status_code}: not served")
        if answer.is_redirect:
            return f"{route} answers {answer.status_code}: redirects are measured, not followed"
        if not answer.is_success:
            return f"{route} answers {answer.status_code}"
        if not ended:
            return (
                f"{route} still answers after {BODY_DEADLINE_S:.0f} s: requests that do not end "
                "in the window are not counted"
            )
        return None

    def _ends(self, answer: httpx.Response) -> bool:
        """Whether the body ends in time. One of more than BODY_BYTES counts as one that ends."""
        try:
            self._http.read(answer, BODY_BYTES, BODY_DEADLINE_S)
        except httpx.ReadTimeout:
            return False
        return True


def _require_model(server: str, answer: Answer) -> None:
    """Raises LabUnreachable where the answer is of another server."""
    model = answer.headers.get(MODEL_HEADER)
    if model != server:
        raise LabUnreachable(
            f"{answer.url} is answered by {model or 'something without a name'}", server
        )
