"""Which part of the lab is sent which token."""

import hashlib

import httpx
import pytest

from lab.system.http import Http, Part
from lab.system.tokens import HEADER, token, token_sums

SECRET = "the secret of a lab"


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("http://event-loop:8081/settings", "event-loop"),
        ("http://netty:8081/gc", "netty"),
        ("http://downstream:8081/settings", "downstream"),
        ("http://toxiproxy:8475/proxies", "toxiproxy"),
        ("http://loadgen:9464/trial", "loadgen"),
        ("http://my-service:9405/recording/cpu", "recorder"),
        ("http://event-loop:8080/", None),
        ("http://toxiproxy:8666/", None),
        ("http://prometheus:9090/api/v1/query", None),
        ("https://shop.example/", None),
    ],
)
def test_each_part_is_sent_its_own_token_and_others_none(url: str, part: str | None) -> None:
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get(HEADER))
        return httpx.Response(200, json={})

    for secret in (SECRET, ""):
        Part(Http(httpx.MockTransport(answer), secret), "part", url).call("GET", "")
    assert seen == [part and token(SECRET, part), None]


def test_a_part_that_redirects_is_sent_no_token_for_another() -> None:
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.host)
        return httpx.Response(307, headers={"Location": "http://netty:8081/restart"})

    http = Http(httpx.MockTransport(answer), SECRET)
    Part(http, "part", "http://event-loop:8081").ask("POST", "/gc")
    assert seen == ["event-loop"]


def test_parts_know_their_tokens_by_their_sums() -> None:
    first, second = token_sums(SECRET, ("netty", "downstream")).split(",")
    assert first == f"netty={hashlib.sha256(token(SECRET, 'netty').encode()).hexdigest()}"
    assert second.startswith("downstream=")
    assert token(SECRET, "netty") not in first
    assert len({token(SECRET, "netty"), token(SECRET, "vertx"), token("other", "netty")}) == 3
