"""Every address that the lab is given is one that all can ask, or is refused in one line."""

import re

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple

from lab.errors import LabError, WordError
from lab.kinds.plans import of_verb
from lab.kinds.reading import Here
from lab.model.address import parse
from lab.subject.external_service import ExternalService
from lab.system.host_changes import HostChanges
from lab.system.stack import Stack

HERE = Here(("fixed-pool",), 20_000)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("http://10.0.0.256:8080/", "Octet 256 (> 255) not permitted in '10.0.0.256'"),
        ("http://192.168.001.010/", "Leading zeros are not permitted"),
        ("http://127.1/", "127.1 is no host: Expected 4 octets"),
        ("http://0x7f000001/", "0x7f000001 is no host: Expected 4 octets"),
        ("http://my..service:8080/", "'my..service' is no host name"),
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
        ("http://a/#x", "'#' is not allowed in it"),
        ("http://a/b c", "' ' is not allowed in it"),
        ("http://a/\x1b]52;c", r"'\x1b' is not allowed in it"),
        ("http://a/b%zz", "%zz in it is no escape (a percent sign is %25)"),
        ("http://a/?q=%2", "%2 in it is no escape"),
        ("http://a/b/../c", "/.. in its path is sent by some"),
        ("http://a/.?x", "/. in its path is sent by some"),
        ("http://a?x", "is not an address; allowed: http(s)://"),
        ("http:/a/", "is not an address; allowed: http(s)://"),
        ("HTTP://a/", "is not an address; allowed: http(s)://"),
        ("", "is not an address; allowed: http(s)://"),
    ],
)
def test_what_is_read_in_two_ways_is_refused_with_its_sign(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)) as refused:
        parse(text)
    assert str(refused.value).startswith(text)
    with pytest.raises(WordError) as refused_word:
        of_verb("bench", {"TARGET": text, "CONC": "5"}, HERE)
    assert str(refused_word.value).isprintable()


def test_others_are_taken_as_they_are() -> None:
    of = parse("https://My-Service.xn--mnchen-3ya.example:08443//a;b%2F*?q=%20&r=?")
    assert astuple(of) == (
        *("https", "my-service.xn--mnchen-3ya.example", 8443, "//a;b%2F*?q=%20&r=?"),
    )


# Parts of addresses: first right ones, then wrong ones.
SCHEMES = ("http://", "https://"), ("HTTP://", "ftp://", "http:/", "//", "")
HOSTS = (
    ("a", "my-service", "A_b", "10.0.0.1", "xn--mnchen-3ya", "localhost"),
    (
        *(
            "10.0.0.256",
            "1.2.3",
            "08.0.0.1",
            "0x7f.1",
            "[::1",
            "[fe80::1]",
            "[fe80::1%25eth0]",
            "a" * 64,
        ),
        *("my..service", ".", "-", "_-", "xn--", "xn--a", "xn--ls8h", "é", "ı", "a." * 130),
        *("", "u:p@a", "a\x00b", "${HOST}", "localhost."),
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
ALL = (SCHEMES, HOSTS, PORTS, PATHS)
RIGHT = st.tuples(*(st.sampled_from(right) for right, _ in ALL)).map("".join)
ANY = st.tuples(*(st.sampled_from((*right, *wrong)) for right, wrong in ALL)).map("".join)
SIGNS = st.sampled_from("\x00\t\n\x1b\x7f\x9b\u202e%@#[]:/\\ é.-")
CUT = st.builds(lambda text, at, sign: text[:at] + sign + text[at:], ANY, st.integers(0, 20), SIGNS)
HOSTILE = RIGHT | ANY | CUT


def service(url: str, location: str) -> ExternalService:
    """A service that redirects."""
    headers = [(b"Location", location.encode("utf-8", "surrogatepass"))]
    redirect = httpx.MockTransport(lambda _: httpx.Response(307, headers=headers))
    return ExternalService("my-service", url, "/", Stack("", redirect), HostChanges(None))


@given(RIGHT, HOSTILE)
def test_a_right_address_is_asked_and_no_other(text: str, location: str) -> None:
    experiment, _ = of_verb("bench", {"TARGET": text, "CONC": "5"}, HERE)
    answer = service(str(experiment.target), location).check_route(experiment.routes[0])
    assert answer.code == "answers-redirect"
    # As Python's getaddrinfo.
    parse(text).host.encode("idna")


@settings(max_examples=300)
@given(HOSTILE, HOSTILE)
def test_every_address_ends_in_one_line(text: str, location: str) -> None:
    # A stored run may have what no word has.
    for use in (
        lambda: of_verb("bench", {"TARGET": text, "CONC": "5"}, HERE),
        lambda: service(text, location).check_route(""),
    ):
        refused = ""
        try:
            use()
        except LabError as failure:
            refused = str(failure)
        assert refused.isprintable()
        assert len(refused) < 5_000
