"""``python -m lab_dashboards [FOLDER]``: write every dashboard's JSON to FOLDER (default: the
repository's grafana/dashboards) and remove files of dashboards that are no more."""

from __future__ import annotations

import sys
from pathlib import Path

from lab_dashboards.build import build

HERE = Path(__file__).resolve().parents[2] / "dashboards"


def main(folder: Path) -> None:
    """Write them."""
    files = build()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    for stale in folder.glob("*.json"):
        if stale.name not in files:
            stale.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
