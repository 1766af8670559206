"""What Prometheus looks at closely, and how long a trial waits for that."""

from lab.system.attention import HEEDED_S, POLL_S, WAIT_S, Attention
from support.fakes import FakeLab


def attention(fake: FakeLab) -> Attention:
    return Attention(fake.stack, fake.system)


def test_the_agent_is_told_which_servers_are_measured() -> None:
    fake = FakeLab()
    attention(fake).turn("b", "a")
    assert fake.attended == [["b", "a"]]
    # Without an agent the trial goes on.
    attention(FakeLab(agent_up=False)).turn("b")


def waited_s(fake: FakeLab, warm_up_s: float = 0, told: Attention | None = None) -> float:
    """How long a trial waits for Prometheus to look closely at its server, or no more."""
    fake.system.sleep(60)
    if told is not None:
        told.turn("a")
        fake.system.sleep(2)
        told.turn("a", "b")
    began = fake.system.monotonic()
    (told or attention(fake)).await_close_look("a", warm_up_s)
    return fake.system.monotonic() - began


def test_there_is_no_wait_for_a_close_look_or_for_a_prometheus_that_is_away() -> None:
    assert waited_s(FakeLab()) == 0
    assert waited_s(FakeLab(down={"prometheus"})) == 0


def test_a_trial_waits_until_its_server_is_scraped_every_second() -> None:
    # Its last scrape was 58 s ago: what is asked is the past, so it stays so.
    assert WAIT_S <= waited_s(FakeLab(scraped_until=2.0), 10) < WAIT_S + 2 * POLL_S
    assert WAIT_S <= waited_s(FakeLab(scraped=[])) < WAIT_S + 2 * POLL_S
    only = FakeLab(scraped=[({"__name__": "up", "job": "server"}, lambda _: 1.0)])
    assert WAIT_S <= waited_s(only) < WAIT_S + 2 * POLL_S


def test_it_waits_no_longer_than_the_warm_up_leaves_prometheus_to_heed_what_it_was_told() -> None:
    # Told 2 s ago. Nothing is scraped, and the trial's own warm-up is 1 s.
    fake = FakeLab(scraped=[])
    wanted_s = HEEDED_S - 2 - 1
    assert wanted_s <= waited_s(fake, 1, attention(fake)) < wanted_s + 2 * POLL_S
    fake = FakeLab(scraped=[])
    assert waited_s(fake, HEEDED_S, attention(fake)) == 0
    # An agent that was not reached has told nobody.
    fake = FakeLab(scraped=[], agent_up=False)
    assert waited_s(fake, HEEDED_S, attention(fake)) >= WAIT_S
