"""Every address that the lab is given is one that all can ask, or is refused in one line."""

import asyncio
import re
from collections.abc import Callable
from functools import partial
from random import Random

import httpx
import pytest
from msgspec.structs import astuple

from lab.errors import LabError, WordError
from lab.kinds.plans import of_verb
from lab.kinds.reading import Here
from lab.live.agent.client import Client
from lab.model.address import parse
from lab.subject.external_service import ExternalService
from lab.system.host_changes import HostChanges
from lab.system.stack import Stack, Urls

HERE = Here(("fixed-pool",), 20_000)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("http://10.0.0.256:8080/", "Octet 256 (> 255) not permitted in '10.0.0.256'"),
        ("http://192.168.001.010/", "Leading zeros are not permitted"),
        ("http://127.1/", "127.1 is no host: Expected 4 octets"),
        ("http://2130706433/", "2130706433 is no host: Expected 4 octets"),
        ("http://0x7f000001/", "0x7f000001 is no host: Expected 4 octets"),
        ("http://1.2.3.4.5/", "Expected 4 octets"),
        ("http://my..service:8080/", "'my..service' is no host name"),
        ("http://.a/", "'.a' is no host name"),
        ("http://localhost./", "'localhost.' is no host name"),
        ("http://-a/", "'-a' is no host name"),
        ("http://a-.b/", "'a-.b' is no host name"),
        (f"http://{'a' * 64}/", "is no host name"),
        (f"http://{'a.' * 127}a/", "is no host name"),
        ("http:///x", "'' is no host name"),
        ("http://xn--:8080/", "'xn--' is no host name"),
        ("http://a.xn--a/", "a.xn--a is no host: "),
        ("http://my-café/", "'my-café' is no host name"),
        ("http://a%41/", "'a%41' is no host name"),
        ("http://a:/", "port '' is not allowed; allowed: 1..65535"),
        ("http://a:65536/", "port '65536' is not allowed"),
        ("http://a:８0/", "port '８0' is not allowed"),
        ("http://a:80:80/", "port '80:80' is not allowed"),
        ("http://u@a/", "a user or a password (@) is not allowed"),
        ("http://u:p@a/", "a user or a password (@) is not allowed"),
        ("http://a/#x", "'#' is not allowed in it"),
        ("http://a#x", "'a#x' is no host name"),
        ("http://a/b c", "' ' is not allowed in it"),
        ("http://a/b\\c", r"'\\' is not allowed in it"),
        ("http://a/\x1b]52;c", r"'\x1b' is not allowed in it"),
        ("http://a/b\n", r"'\n' is not allowed in it"),
        ("http://a/\u202e", r"'\u202e' is not allowed in it"),
        ("http://a/b%zz", "%zz in it is no escape (a percent sign is %25)"),
        ("http://a/100%", "% in it is no escape"),
        ("http://a/?q=%2", "%2 in it is no escape"),
        ("http://a/b/../c", "/.. in its path is sent by some"),
        ("http://a/.?x", "/. in its path is sent by some"),
        ("http://a?x", "is not an address; allowed: http(s)://"),
        ("http:/a/", "is not an address; allowed: http(s)://"),
        ("HTTP://a/", "is not an address; allowed: http(s)://"),
        ("//a/", "is not an address; allowed: http(s)://"),
        ("", "is not an address; allowed: http(s)://"),
        ("http://[::1/", "is not allowed"),
    ],
)
def test_what_is_read_in_two_ways_is_refused_with_its_sign(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)) as refused:
        parse(text)
    assert str(refused.value).startswith(text)
    with pytest.raises(WordError) as refused_word:
        of_verb("bench", {"TARGET": text, "CONC": "5"}, HERE)
    assert str(refused_word.value).isprintable()
    with pytest.raises(WordError, match=r"^LAB_AGENT_URL="):
        Urls.read({"LAB_AGENT_URL": text})


def test_others_are_taken_as_they_are() -> None:
    of = parse("https://My-Service.xn--mnchen-3ya.example:08443//a;b%2F*?q=%20&r=?")
    assert astuple(of) == (
        *("https", "my-service.xn--mnchen-3ya.example", 8443, "//a;b%2F*?q=%20&r=?"),
    )


# Parts of addresses: first right ones, then wrong ones.
SCHEMES = ("http://", "https://"), ("HTTP://", "ftp://", "http:/", "//", "")
HOSTS = (
    ("a", "my-service", "A_b", "10.0.0.1", "xn--mnchen-3ya", "localhost", "127.0.0.1"),
    (
        *("10.0.0.256", "1.2.3", "08.0.0.1", "0x7f.1", "[::1", "[fe80::1]", "[fe80::1%25eth0]"),
        *("my..service", ".", "-", "_-", "xn--", "xn--a", "xn--ls8h", "é", "ı", "a" * 64),
        *("a." * 130, "", "u:p@a", "a\x00b", "${HOST}", "localhost."),
    ),
)
PORTS = (
    ("", ":1", ":8080", ":65535"),
    (":0", ":65536", ":", ":-1", ":x", ":1:2", ":٣", f":{'9' * 5_000}"),
)
PATHS = (
    ("", "/", "/x?a=1", "/%41", "//a", "/;*"),
    (
        *("/a%zz", "/%", "/..", "/a/./b", "/#", "/ ", "/\\", "/\x1b]52;c;x", "/\r\nX: y"),
        *("/\u202e", "/é", "/{id}", f"/{'x' * 5_000}", "?x", "/\ud800", "@b"),
    ),
)


def hostile(random: Random) -> str:
    parts = (SCHEMES, HOSTS, PORTS, PATHS)
    text = "".join(random.choice(random.choices(part, (4, 1))[0]) for part in parts)
    if random.random() < 0.2:
        at = random.randrange(len(text) + 1)
        text = text[:at] + random.choice("\x00\t\n\x1b\x7f\x9b\u202e%@#[]:/\\ é.-") + text[at:]
    return text


def ends[T](call: Callable[[], T]) -> T | None:
    """What it returns; None where it is refused in one line."""
    try:
        return call()
    except LabError as failure:
        refused = str(failure)
    assert refused.isprintable()
    assert len(refused) < 5_000
    return None


def service(stack: Stack, url: str) -> ExternalService:
    return ExternalService("my-service", url, "/", stack, HostChanges(None))


def test_every_address_ends_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    random, taken = Random(49), 0

    def redirect(_: httpx.Request) -> httpx.Response:
        where = hostile(random).encode("utf-8", "surrogatepass")
        return httpx.Response(random.choice([301, 302, 307]), headers=[(b"Location", where)])

    async def connect(host: str, port: int) -> None:
        host.encode("idna")  # As Python's getaddrinfo.
        raise OSError(f"nothing listens at {host}:{port}")

    monkeypatch.setattr(asyncio, "open_connection", connect)
    stack = Stack(Urls.read({}), httpx.MockTransport(redirect))
    for _ in range(500):
        text = hostile(random)
        found = ends(partial(of_verb, "bench", {"TARGET": text, "CONC": "5"}, HERE))
        # A stored run may have what no word has.
        said = ends(partial(service(stack, text).check_route, ""))
        if found is not None:
            experiment, _ = found
            said = service(stack, str(experiment.target)).check_route(experiment.routes[0])
            assert said.code == "answers-redirect"
            with pytest.raises(OSError, match="nothing listens"):
                asyncio.run(Client().get(f"{experiment.target}{experiment.routes[0]}"))
            taken += 1
    assert 50 < taken < 250
