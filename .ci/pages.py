"""Writes the part of a page that is between two marks, `<!-- NAME -->` and `<!-- end of NAME -->`.

`python3 .ci/pages.py PAGE NAME` takes the text from standard input. What people wrote around the
marks stays.
"""

import re
import sys
from pathlib import Path


def between(page: str, name: str, text: str) -> str:
    """The page with this text between the marks of that name. Raises ValueError without marks."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    if page.count(begin) != 1 or end not in page.partition(begin)[2]:
        raise ValueError(f"the page has no place between {begin.strip()} and {end}, or several")
    before, _, rest = page.partition(begin)
    return before + begin + text.rstrip("\n") + "\n" + end + rest.partition(end)[2]


def anchor(heading: str) -> str:
    """The name that a heading has in a link, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("pages.py: PAGE NAME, the text on standard input")
    file = Path(sys.argv[1])
    try:
        file.write_text(between(file.read_text(), sys.argv[2], sys.stdin.read()))
    except (ValueError, OSError) as failure:
        sys.exit(f"{file}: {failure}")
