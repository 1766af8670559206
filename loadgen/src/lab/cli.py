"""Wiring only: a verb and its words to the function that does it. The one module that sees all."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the `lab` command."""
    sys.exit("lab: no verb is wired yet")
