from __future__ import annotations

from lab.system.attention import POLL_S, WAIT_S, attend, await_close_look
from support.fakes import FakeLab


def test_the_agent_is_told_which_servers_are_measured() -> None:
    fake = FakeLab()
    attend(fake.stack, "b", "a")
    assert fake.attended == [["b", "a"]]


def test_without_an_agent_the_trial_goes_on() -> None:
    attend(FakeLab(agent_up=False).stack, "b")


def only(job: str) -> FakeLab:
    return FakeLab(scraped=[({"__name__": "up", "job": job}, lambda _: 1.0)])


def waited_s(fake: FakeLab, *, unobserved: bool = False) -> float:
    """How long a trial waits for Prometheus to look closely at its server, or no more."""
    fake.system.sleep(60)
    began = fake.system.monotonic()
    await_close_look("a", fake.stack, fake.system, unobserved=unobserved)
    return fake.system.monotonic() - began


def test_a_server_that_is_scraped_every_second_is_not_waited_for() -> None:
    assert waited_s(FakeLab()) == 0


def test_a_trial_waits_until_its_server_is_scraped_every_second() -> None:
    # Its last scrape was 58 s ago: what is asked is the past, so it stays so.
    assert WAIT_S <= waited_s(FakeLab(scraped_until=2.0)) < WAIT_S + 2 * POLL_S
    assert WAIT_S <= waited_s(FakeLab(scraped=[])) < WAIT_S + 2 * POLL_S
    assert WAIT_S <= waited_s(only("server")) < WAIT_S + 2 * POLL_S


def test_a_trial_that_is_not_observed_waits_until_its_server_is_not_scraped() -> None:
    assert waited_s(FakeLab(scraped=[]), unobserved=True) == 0
    assert WAIT_S <= waited_s(FakeLab(), unobserved=True) < WAIT_S + 2 * POLL_S
    # Prometheus looks for cAdvisor less often than for servers.
    assert WAIT_S <= waited_s(only("cadvisor"), unobserved=True) < WAIT_S + 2 * POLL_S


def test_a_prometheus_that_does_not_answer_is_not_waited_for() -> None:
    assert waited_s(FakeLab(down={"prometheus"})) == 0
