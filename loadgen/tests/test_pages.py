"""What a page links to is there, and so are the tests that it names."""

import re
from pathlib import Path

import pytest

from support.pages import anchors, sections, without_code
from support.repo import REPO

# A stored run's report links to figures that are not stored.
PAGES = [
    page
    for folder in ("", "docs", "docs/results", "downstream", "grafana", "host", "images")
    for page in sorted((REPO / folder).glob("*.md"))
] + sorted(REPO.glob("servers/*/MODEL.md"))
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
# A file as a link, and after it the names that are to be found in it.
NAMED = re.compile(r"\]\(([^)]*)\)((?: `[^`]*`)+)")


def names(page: Path) -> str:
    return str(page.relative_to(REPO))


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", without_code(page.read_text()))
    for name, anchor in LINK.findall(text):
        if "://" in name:
            continue
        path = page.parent / name if name else page
        assert path.exists(), name
        assert not anchor or anchor in anchors(path.read_text()), (name, anchor)


@pytest.mark.parametrize("page", ["docs/security.md", "docs/reliability.md"])
def test_the_tests_that_a_table_names_are_there(page: str) -> None:
    path = REPO / page
    heading = re.compile(r"(?m)^\|.*\| tested by \|\n\|[-|]+\n((?:\|.*\n)+)")
    tables = heading.findall(path.read_text())
    assert tables
    for row in "".join(tables).splitlines():
        for file, tests in NAMED.findall(row):
            text = (path.parent / file).read_text()
            for test in re.findall("`([^`]*)`", tests):
                assert test in text, (file, test)


def test_every_weakness_that_was_found_has_its_test() -> None:
    table = sections((REPO / "docs/security.md").read_text())[
        "weaknesses-that-were-found-and-the-test-of-each"
    ]
    rows = table.split("|---|---|---|\n")[1].splitlines()
    assert len([one for one in rows if NAMED.search(one)]) == 11
