"""A verb as it was called: its words, and where it runs, as the host says by variables."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.kinds.reading import Here, read_servers
from lab.system.host import source_ports


@dataclass(frozen=True, slots=True)
class Call:
    """A verb with its words, and the variables of the process."""

    verb: str
    words: Mapping[str, str]
    variables: Mapping[str, str]

    @property
    def home(self) -> Path:
        return Path(self.variables.get("LAB_HOME", "/lab"))

    @property
    def results(self) -> Path:
        return self.home / "results"

    @property
    def servers(self) -> tuple[str, ...]:
        """The models that are up. Raises LabError."""
        return read_servers(self.home / "servers", self.variables)

    @property
    def services(self) -> tuple[str, ...]:
        """Those of the user's own that are containers of the lab."""
        return tuple(self.variables.get("LAB_OWN", "").split())

    @property
    def here(self) -> Here:
        """Raises LabError."""
        return Here(
            self.servers,
            file_limit(),
            source_ports(),
            self.services,
            self.home / "subjects",
            self.variables.get("LAB_TAG", "local"),
            self.results,
        )


def file_limit() -> int:
    """How many files a process may hold open here; raises its own limit to that."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return 1_048_576 if hard == resource.RLIM_INFINITY else hard
