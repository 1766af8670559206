"""What a page links to is there, and so are the tests that it names."""

import re
from pathlib import Path

import pytest

from support.pages import anchors, sections, without_code
from support.repo import REPO, script

PARTS = ("go/downstream", "grafana", "host", "images", "servers")
# A stored run's report links to figures that are not stored.
PAGES = [
    page
    for folder in ("", ".ci", "docs", "docs/results", *PARTS)
    for page in sorted((REPO / folder).glob("*.md"))
] + sorted(REPO.glob("servers/*/*/MODEL.md"))
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
# A file as a link, and after it the names that are to be found in it.
NAMED = re.compile(r"\]\(([^)]*)\)((?:,? `[^`]*`)+)")


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
def test_each_row_names_its_test_and_that_is_there(page: str) -> None:
    path = REPO / page
    heading = re.compile(r"(?m)^\|.*\| tested by \|\n\|[-|]+\n((?:\|.*\n)+)")
    tables = heading.findall(path.read_text())
    assert tables
    faults = {line.split(",")[0] for line in (REPO / ".ci/cells.csv").read_text().splitlines()}
    for row in "".join(tables).splitlines():
        by = row.split(" | ")[-1].rstrip("| ")
        named = NAMED.findall(by)
        # Of a file without a name nobody knows which test it is.
        assert len(named) == len(LINK.findall(by)), row
        assert named or set(by.split(", ")) <= faults, row
        for file, tests in named:
            text = (path.parent / file).read_text()
            for test in re.findall("`([^`]*)`", tests):
                assert test in text, (file, test)


def test_every_weakness_that_was_found_has_its_test() -> None:
    table = sections((REPO / "docs/security.md").read_text())[
        "weaknesses-that-were-found-and-the-test-of-each"
    ]
    rows = [line for line in table.split("|---|---|---|\n")[1].splitlines() if line[:1] == "|"]
    assert rows
    assert [row for row in rows if not NAMED.search(row)] == []


def test_what_people_wrote_around_a_written_part_stays() -> None:
    between = script("pages").between
    page = "above\n<!-- x -->\nold\n<!-- end of x -->\nbelow\n"
    assert between(page, "x", "new\n") == page.replace("old", "new")
    for wrong in ("above", page + page):
        with pytest.raises(ValueError, match="no place between <!-- x --> and <!-- end of x -->"):
            between(wrong, "x", "new")


def test_pages_scripts_and_modules_are_listed() -> None:
    docs, ci, servers = (
        (REPO / name / "README.md").read_text() for name in ("docs", ".ci", "servers")
    )
    pages = {page.name for page in (REPO / "docs").glob("*.md")} - {"README.md"}
    assert sorted(name for name, _ in LINK.findall(docs) if "/" not in name) == sorted(pages)
    listed = set(re.findall(r"`([a-z_-]+(?:\.[a-z]+)?)/?(?: page)?`", ci))
    scripts = {path.name for path in (REPO / ".ci").iterdir()} - {"README.md", "__pycache__"}
    assert scripts == listed & scripts
    assert not {name for name in listed if "." in name} - scripts
    poms = [*REPO.glob("servers/*/pom.xml"), *REPO.glob("servers/*/*/pom.xml")]
    modules = {path.parent.name for path in poms}
    assert modules == set(re.findall(r"`([a-z-]+)`", servers))
