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
    found = [*re.finditer(r"(?m)^(#+) (.+)$", without_code(text))]
    ends = [
        next((one.start() for one in found[at + 1 :] if len(one[1]) <= len(of[1])), len(text))
        for at, of in enumerate(found)
    ]
    return {_anchor(of[2]): text[of.start() : end] for of, end in zip(found, ends, strict=True)}


def anchors(text: str) -> set[str]:
    """All names that a link to this page may end with."""
    return {*sections(text), *re.findall(r'<a id="([^"]+)">', text)}
