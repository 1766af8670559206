"""The tables of docs/hosts.md are what the published runs say."""

from support.repo import REPO, script

hosts, pages = script("hosts"), script("pages")


def test_the_tables_are_those_of_the_files() -> None:
    page = (REPO / "docs/hosts.md").read_text()
    assert pages.between(page, "hosts", "\n".join(hosts.lines())) == page
