"""What a run changes of the lab: apply, read back, undo; and a journal of it.

A carrier has values that change while it runs: a server's management port, and Toxiproxy. A Change
has some of them other than it found them. The journal is on disk meanwhile: a driver that is killed
(SIGKILL) puts nothing back, and the next driver that measures does. The third carrier, a container,
is the host's, and host/changes.sh puts that back.
"""

import copy
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, cast

from msgspec.structs import asdict

from lab.errors import LabUnreachable
from lab.model import Json, Record, Remark
from lab.model.knobs import knobs_of, starting
from lab.model.toxics import WHOLE_PROXY, Toxic, ToxicRequest, ToxicsInForce, applied
from lab.store.records import from_json, read_json, write_json, writing
from lab.system.host import Clock
from lab.system.host_changes import HostChanges
from lab.system.management import Management
from lab.system.stack import Stack
from lab.system.toxiproxy import Toxiproxy

Kind = Literal["toxic", "knob"]
# A knob of a server, a toxic of a proxy, or WHOLE_PROXY of it.
Item = tuple[str, str]
# None: not there.
Values = Mapping[Item, Json]
UNKNOWN = object()


class Carrier(Protocol):
    """Both methods raise LabUnreachable."""

    @property
    def kind(self) -> Kind: ...

    def read(self) -> Values: ...

    def write(self, values: Values) -> None:
        """Have these values, and read them back."""


@dataclass(frozen=True, slots=True)
class Knobs:
    """The settings that a server takes while it runs, those that its model has."""

    management: Management
    kind: Kind = "knob"

    def read(self) -> Values:
        knobs = knobs_of(self.management.settings())
        return {(self.management.name, name): value for name, value in knobs.items()}

    def write(self, values: Values) -> None:
        if values:
            self.management.change_knobs({name: cast(int, v) for (_, name), v in values.items()})


@dataclass(frozen=True, slots=True)
class Toxics:
    """The toxics of each proxy, and whether the proxy itself is up."""

    toxiproxy: Toxiproxy
    kind: Kind = "toxic"

    def read(self) -> Values:
        return values_of(self.toxiproxy.in_force())

    def write(self, values: Values) -> None:
        for (proxy, name), value in values.items():
            state = value if value is None or isinstance(value, bool) else from_json(Toxic, value)
            self.toxiproxy.write(proxy, name, state)


def values_of(in_force: ToxicsInForce) -> Values:
    values: dict[Item, Json] = {}
    for proxy in in_force.proxies:
        values[proxy.name, WHOLE_PROXY] = proxy.enabled
        for toxic in proxy.toxics:
            values[proxy.name, toxic.name] = asdict(toxic)
    return values


def after(in_force: ToxicsInForce, requests: Iterable[ToxicRequest]) -> Values:
    """What these requests change, as it is after all of them. Raises LabUnreachable, WordError."""
    items: list[Item] = []
    for request in requests:
        in_force = applied(in_force, request)
        items.append(request.item)
    values = values_of(in_force)
    return {item: values.get(item) for item in items}


class Container:
    """A container that the host gives other settings. `has` is what it was given, None if a change
    of it failed half-way, so that is unknown."""

    def __init__(self, name: str, host: HostChanges) -> None:
        self._name = name
        self._host = host
        self.has: Mapping[str, str] | None = {}

    def replaces(self, wanted: Mapping[str, str]) -> bool:
        """True if these settings take another JVM, or may take one."""
        return self.has is None or starting(self.has) != starting(wanted)

    def bring(self, wanted: Mapping[str, str], clock: Clock) -> None:
        """Have these settings, all others at their defaults. Raises as HostChanges.change."""
        if self.has == wanted:
            return
        self.has = None
        self._host.change(self._name, wanted, clock)
        self.has = dict(wanted)


class Entry(Record):
    """One thing that is not as it was `found`. `left` is every value that the run may have left it
    at. `part` is the server or the proxy."""

    kind: Kind
    part: str
    name: str
    found: Json
    left: tuple[Json, ...] = ()

    def __post_init__(self) -> None:
        for value in (self.found, *self.left):
            if isinstance(value, Mapping):
                from_json(Toxic, value)
            elif value is not None and not isinstance(value, int):
                raise ValueError(f"{value!r} is no value of a knob or a proxy")

    @property
    def text(self) -> str:
        if self.kind == "knob":
            return f"{self.name} of {self.part}"
        return f"{self.part}/{self.name}" if self.name else self.part


class Kept(Record):
    """The file."""

    touched: tuple[Entry, ...]
    format_version: int = 1


class Journal:
    """The file at `path`, there only while something is changed. With `path` None nothing is kept:
    without a lock that shows whether a driver is alive, nobody may act on its journal.

    An entry stays until the lab reads back as it was found before the first change. Raises
    RawDataError for a file that is no journal. What changes the file raises CannotWrite.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._entries: dict[tuple[Kind, str, str], Entry] = {}
        if path is not None and path.exists():
            for entry in read_json(path, Kept).touched:
                self._entries[entry.kind, entry.part, entry.name] = entry

    def begin(self, kind: Kind, found: Values, wanted: Values) -> None:
        """These values will be written, over those that were found."""
        before = dict(self._entries)
        for item, value in wanted.items():
            entry = self._entries.get((kind, *item)) or Entry(kind, *item, found.get(item))
            if value not in (entry.found, *entry.left):
                left = (*entry.left, *_on_the_way(entry.found, value), value)
                self._entries[kind, *item] = copy.replace(entry, left=left)
        if self._entries != before:
            self._write()

    def end(self, kind: Kind, items: Iterable[Item], now: Values) -> None:
        for item in items:
            entry = self._entries.get((kind, *item))
            if entry is not None and now.get(item) == entry.found:
                self._forget(entry)

    def put_back(self, stack: Stack) -> Remark | None:
        """Undo what a killed driver changed, unless it was changed since. What does not answer, or
        cannot be changed, stays in the journal, and is no news."""
        back: list[str] = []
        for entry in list(self._entries.values()):
            carrier: Carrier = Toxics(stack.toxiproxy)
            if entry.kind == "knob":
                carrier = Knobs(Management(stack.http, entry.part))
            item = (entry.part, entry.name)
            with suppress(LabUnreachable):
                now = carrier.read().get(item)
                if now != entry.found and now in entry.left:
                    carrier.write({item: entry.found})
                    back.append(entry.text)
                self._forget(entry)
        return Remark("left-changed", {"back": ", ".join(back)}) if back else None

    def _forget(self, entry: Entry) -> None:
        del self._entries[entry.kind, entry.part, entry.name]
        self._write()

    def _write(self) -> None:
        if self._path is None:
            return
        if self._entries:
            write_json(self._path, Kept(tuple(self._entries.values())))
        else:
            with writing(self._path):
                self._path.unlink(missing_ok=True)


def _on_the_way(found: Json, value: Json) -> tuple[Json, ...]:
    """Toxiproxy removes a toxic before another one of its name takes its place."""
    if not isinstance(found, Mapping) or not isinstance(value, Mapping):
        return ()
    return () if all(found[key] == value[key] for key in ("type", "stream")) else (None,)


class Change:
    """Some values of a carrier, other than they were found: those of one condition, or of one
    script. Every method raises LabUnreachable, CannotWrite."""

    def __init__(self, carrier: Carrier, journal: Journal) -> None:
        self.carrier = carrier
        self._journal = journal
        self._found: dict[Item, Json] = {}
        self._has: dict[Item, object] = {}

    @property
    def as_found(self) -> bool:
        """False also after a change that failed."""
        return all(self._found[item] == value for item, value in self._has.items())

    def keep(self) -> None:
        """From now on all of its values go back to what they are now."""
        self._found.update(self.carrier.read())

    def apply(self, wanted: Values, now: Values | None = None) -> None:
        """Have these values, and leave all others alone. `now` is what was just read."""
        now = self.carrier.read() if now is None else now
        for item in wanted:
            self._found.setdefault(item, now.get(item))
        changed = {item: value for item, value in wanted.items() if now.get(item) != value}
        self._journal.begin(self.carrier.kind, self._found, changed)
        self._has.update(dict.fromkeys(changed, UNKNOWN))
        self.carrier.write(changed)
        self._has.update(wanted)

    def bring(self, wanted: Values, leave: Collection[str] = ()) -> None:
        """Have these values, and all others as they were found, but for the names in `leave`."""
        found = {item: value for item, value in self._found.items() if item[1] not in leave}
        self.apply({**found, **wanted})

    def undo(self) -> None:
        """Have all that was changed as it was found."""
        if self._found:
            self.apply(self._found)
            self._journal.end(self.carrier.kind, self._found, self.carrier.read())
            self._found, self._has = {}, {}
