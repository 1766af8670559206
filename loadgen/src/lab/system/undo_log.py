"""What a run has changed of the lab, kept on disk while it is changed.

A driver that is killed (SIGKILL) puts nothing back. The next driver that measures undoes what the
undo log holds. Changed containers are not in it: host/changes.sh puts those back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lab.errors import LabUnreachable
from lab.model import Json
from lab.model.toxic_script import WHOLE_PROXY
from lab.model.toxics import Toxic, ToxicsInForce
from lab.store.records import from_json, read_json, write_json, writing
from lab.system.stack import Stack

Kind = Literal["toxic", "knob"]
NOT_PUT_BACK = "could not be put back"


@dataclass(frozen=True, slots=True)
class Touched:
    """One thing that is not as it was `found`: a toxic of a proxy (WHOLE_PROXY: the proxy itself,
    up or down), or a knob of a server. `left` is every value that the run may have left it at."""

    kind: Kind
    of: str
    name: str
    found: Json
    left: tuple[Json, ...]

    @property
    def text(self) -> str:
        if self.kind == "knob":
            return f"{self.name} of {self.of}"
        return f"{self.of}/{self.name}" if self.name else self.of


@dataclass(frozen=True, slots=True)
class Kept:
    """The file."""

    touched: tuple[Touched, ...]
    format_version: int = 1


class UndoLog:
    """The file at `path`, there only while something is changed. With `path` None nothing is kept:
    where no lock tells whether a driver is still alive, nobody may act on its undo log.

    Call `toxic` and `knob` before a change, `toxics_back` and `knobs_back` after it was taken back.
    An entry stays until the lab reads back as it was found before the first change. Raises
    RawDataError for a file that is not an undo log. What changes the file raises CannotWrite.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._touched: dict[tuple[Kind, str, str], Touched] = {}
        if path is not None and path.exists():
            for one in read_json(path, Kept).touched:
                self._touched[one.kind, one.of, one.name] = one

    def toxic(self, item: tuple[str, str], found: ToxicsInForce, wanted: ToxicsInForce) -> None:
        """`item` (proxy, toxic or WHOLE_PROXY) will be changed from what it was `found` as."""
        self._touch(Touched("toxic", *item, _value(found, item), (_value(wanted, item),)))

    def knob(self, server: str, name: str, found: int, wanted: int) -> None:
        """A knob will be changed from what it was `found` as."""
        self._touch(Touched("knob", server, name, found, (wanted,)))

    def toxics_back(self, items: Iterable[tuple[str, str]], now: ToxicsInForce) -> None:
        """The toxics were taken back: forget each that is `now` as it was found."""
        self._back({("toxic", *item): _value(now, item) for item in items})

    def knobs_back(self, server: str, now: Mapping[str, int]) -> None:
        """The server's knobs were taken back: forget each that is `now` as it was found."""
        self._back({("knob", server, name): value for name, value in now.items()})

    def put_back(self, stack: Stack) -> str | None:
        """Undo what a killed driver changed, unless it was changed since. Returns a line for the
        user, None where there is nothing to say. What does not answer stays in the undo log."""
        back, stayed, stuck = [], [], []
        for key, one in list(self._touched.items()):
            try:
                now = _now(one, stack)
            except LabUnreachable:
                continue
            try:
                if now != one.found and now in one.left:
                    _have(one, stack)
                    back.append(one.text)
                elif now != one.found:
                    stayed.append(one.text)
            except LabUnreachable as failure:
                stuck.append(f"{one.text} ({failure})")
                continue
            self._forget([key])
        parts = (
            ("put back as they were", back),
            ("changed since, so left alone", stayed),
            (NOT_PUT_BACK, stuck),
        )
        said = [f"{what}: {', '.join(names)}" for what, names in parts if names]
        return f"what a run had left changed: {'; '.join(said)}" if said else None

    def _touch(self, one: Touched) -> None:
        key = (one.kind, one.of, one.name)
        known = self._touched.get(key)
        if known is None and one.left == (one.found,):
            return
        if known is not None:
            if one.left[0] in known.left:
                return
            one = dataclasses.replace(known, left=(*known.left, *one.left))
        self._touched[key] = one
        self._write()

    def _back(self, now: Mapping[tuple[Kind, str, str], Json]) -> None:
        touched = self._touched.items()
        self._forget([key for key, one in touched if key in now and now[key] == one.found])

    def _forget(self, keys: Iterable[tuple[Kind, str, str]]) -> None:
        gone = [self._touched.pop(key) for key in keys]
        if gone:
            self._write()

    def _write(self) -> None:
        if self._path is None:
            return
        if self._touched:
            write_json(self._path, Kept(tuple(self._touched.values())))
        else:
            with writing(self._path):
                self._path.unlink(missing_ok=True)


def _value(in_force: ToxicsInForce, item: tuple[str, str]) -> Json:
    """The value in the file: if a proxy is up, or a whole toxic; None where it is not there."""
    proxy = in_force.proxy(item[0])
    if proxy is None:
        return None
    if item[1] == WHOLE_PROXY:
        return proxy.enabled
    toxic = proxy.toxic(item[1])
    return dataclasses.asdict(toxic) if toxic else None


def _now(one: Touched, stack: Stack) -> Json:
    if one.kind == "knob":
        return stack.management.settings(one.of).get(one.name)
    return _value(stack.toxiproxy.in_force(), (one.of, one.name))


def _have(one: Touched, stack: Stack) -> None:
    if one.kind == "knob":
        assert isinstance(one.found, int)  # noqa: S101 - as `knob` says
        stack.management.change_knobs(one.of, {one.name: one.found})
    elif one.name == WHOLE_PROXY:
        stack.toxiproxy.enable(one.of, one.found is True)
    elif isinstance(one.found, Mapping):
        stack.toxiproxy.put(one.of, from_json(Toxic, one.found))
    else:
        stack.toxiproxy.remove(one.of, one.name)
