"""The part of a page that is between two marks, `<!-- NAME -->` and `<!-- end of NAME -->`.

What people wrote around the marks stays.
"""

import re


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
