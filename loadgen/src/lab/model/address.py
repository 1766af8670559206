"""The address of an HTTP service. No I/O.

An address is read by httpx, idna and the C library (driver), by Go's net/url and net (pacer) and by
wrk2. What they do not all read alike is refused here, so that no probe asks another address than
the load.
"""

import ipaddress
import re

import idna

from lab.model.record import Record

PORTS = {"http": 80, "https": 443}
# The agent that marks a trial takes no longer address.
LONGEST = 200
SHAPE = "http(s)://host[:port]/path?query, of letters, digits and ._~:/?@!&()*+,;=%-"
_PARTS = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:/?]*)(?::(?P<port>[^/?]*))?(?P<path>/.*|)", re.DOTALL
)
_NO_SIGN = re.compile(r"[^A-Za-z0-9._~:/?@!&()*+,;=%\-]")
_NO_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}")
# httpx takes them out of a path, pacer and wrk2 send them.
_DOTS = re.compile(r"/\.{1,2}(?=[/?]|$)")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_LONGEST_NAME = 253
# The C library takes 127.1 and 0x7f000001 for addresses, others look them up as names.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT = re.compile(r"[0-9]{1,5}")


class Address(Record):
    """`host` in small letters, of IPv6 in its brackets; `path` with its query, or empty."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def url(self) -> str:
        """Without path and query."""
        return f"{self.scheme}://{self.host}:{self.port}"


def parse(text: str) -> Address:
    """Raises ValueError, whose message begins with the address."""
    scheme, separator, rest = text.partition("://")
    parts = _PARTS.fullmatch(rest) if scheme in PORTS and separator else None
    if parts is None:
        raise ValueError(f"{text} is not an address; allowed: {SHAPE}, at most {LONGEST}")
    host, port, path = parts["host"].lower(), parts["port"], parts["path"]
    problem = _host_problem(host) or (path_problem(path) if path else None)
    if "@" in f"{host}{port}":
        problem = "a user or a password (@) is not allowed in it"
    if problem is not None:
        raise ValueError(f"{text} is not an address: {problem}; allowed: {SHAPE}")
    number = PORTS[scheme] if port is None else int(port) if _PORT.fullmatch(port) else 0
    if not 1 <= number <= 65535:
        raise ValueError(f"{text}: port '{port}' is not allowed; allowed: 1..65535")
    return Address(scheme, host, number, path)


def path_problem(path: str) -> str | None:
    """What is wrong with a path and its query; None if nothing is."""
    if not path.startswith("/"):
        return "it does not begin with /"
    if sign := _NO_SIGN.search(path):
        return f"{sign[0]!r} is not allowed in it"
    if escape := _NO_ESCAPE.search(path):
        return f"{escape[0]} in it is no escape (a percent sign is %25)"
    if dots := _DOTS.search(path.partition("?")[0]):
        return f"{dots[0]} in its path is sent by some and left out by others"
    return None


def _host_problem(host: str) -> str | None:
    if host.startswith("["):
        return None
    labels = host.split(".")
    try:
        if _NUMBER.fullmatch(labels[-1]):
            ipaddress.IPv4Address(host)
        elif len(host) > _LONGEST_NAME or not all(map(_LABEL.fullmatch, labels)):
            return f"{host!r} is no host name"
        elif any(label.startswith("xn--") for label in labels):
            idna.decode(host)
    except ValueError as failure:
        return f"{host} is no host: {failure}"
    return None
