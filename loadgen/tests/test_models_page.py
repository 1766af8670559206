"""docs/models.md counts lines of the servers' code: counted again."""

import re
from pathlib import Path

from support.repo import REPO

SERVERS = REPO / "servers"
SHARED = {
    "front": SERVERS / "lanes/front",
    "reactor": SERVERS / "lanes/reactor",
    "netty-http": SERVERS / "lanes/netty-http",
    "structured": SERVERS / "structured",
    "blocking": SERVERS / "work/src/main/java/lab/work/blocking",
    "nonblocking": SERVERS / "work/src/main/java/lab/work/nonblocking",
}
ROW = re.compile(
    r"^\| \[(?P<model>[a-z-]+)\][^|]*"
    r"\| (?P<own>[\d,]+) \| (?P<sibling>[^|]*) \| (?P<contract>[^|]*) \|",
    re.MULTILINE,
)


def lines(folder: Path) -> int:
    """Lines of code that is shipped, without blank lines, comments and imports."""
    count = 0
    for path in folder.rglob("*.java"):
        if "test" in path.relative_to(folder).parts:
            continue
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        count += sum(
            not re.match(r"\s*($|//|import |package )", line) for line in text.splitlines()
        )
    return count


def counted(cell: str) -> dict[str, int]:
    """The counts of a cell like "`front` 120"."""
    return {name: int(n.replace(",", "")) for name, n in re.findall(r"`([a-z-]+)` ([\d,]+)", cell)}


def test_the_table_of_lines_is_what_the_code_has_now() -> None:
    page = (REPO / "docs/models.md").read_text()
    section = page.partition("## How much code it is")[2].partition("\n## ")[0]
    rows = {row["model"]: row for row in ROW.finditer(section)}
    plain = ("fixed-pool", "virtual-threads", "thread-per-connection", "event-loop", "netty",
             "netty-virtual")  # fmt: skip
    assert tuple(rows) == plain
    for model, row in rows.items():
        assert int(row["own"].replace(",", "")) == lines(SERVERS / "lanes" / model), model
        for name, count in {**counted(row["sibling"]), **counted(row["contract"])}.items():
            assert count == lines(SHARED[name]), (model, name)
        assert len(counted(row["contract"])) == 1, model
