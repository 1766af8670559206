"""Every dashboard as the text of its file."""

from __future__ import annotations

import json
from collections.abc import Mapping

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from lab_dashboards.bottleneck import bottleneck
from lab_dashboards.compare import compare
from lab_dashboards.containers import containers
from lab_dashboards.jvm import jvm
from lab_dashboards.lab import lab

ALL = (lab, bottleneck, compare, jvm, containers)


def build() -> Mapping[str, str]:
    """File name to content; the name is the dashboard's uid."""
    boards = [make() for make in ALL]
    return {
        f"{board.uid}.json": json.dumps(board, cls=JSONEncoder, indent=2, sort_keys=True) + "\n"
        for board in boards
    }
