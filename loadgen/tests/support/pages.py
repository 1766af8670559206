"""The pages of the repository, as tests read them."""

import re
from collections.abc import Mapping

from support.repo import script

_anchor = script("pages").anchor
_CODE = re.compile(r"(?ms)^```.*?^```$")


def without_code(text: str) -> str:
    """The same, its blocks of code blank: as long, so that positions stay as they are."""
    return _CODE.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), text)


def sections(text: str) -> Mapping[str, str]:
    """Each heading's anchor, and its text up to the next heading that is no deeper."""
    headings = [*re.finditer(r"(?m)^(#+) (.+)$", without_code(text))]
    found = {}
    for at, heading in enumerate(headings, start=1):
        later = (each.start() for each in headings[at:] if len(each[1]) <= len(heading[1]))
        found[_anchor(heading[2])] = text[heading.start() : next(later, len(text))]
    return found


def anchors(text: str) -> set[str]:
    """All names that a link to this page may end with."""
    return {*sections(text), *re.findall(r'<a id="([^"]+)">', text)}
