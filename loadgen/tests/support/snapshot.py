"""Texts as they were, in a file beside a test.

LAB_STORED_ANEW=yes writes what differs over it: `git diff` then shows what a change does.
"""

import os
from pathlib import Path


def assert_as_it_was(stored: Path, text: str) -> None:
    if os.environ.get("LAB_STORED_ANEW") == "yes":
        stored.write_text(text, encoding="utf-8")
    assert text == stored.read_text(encoding="utf-8")
