"""What the lab may change of the container of a service of the user's own, to lift a resource: its
limits, and numbers in variables of its environment. No I/O.

Only the host can do that, and it gets the list of names and values before a driver starts
(system/host_changes.py). A value is a text of the user's file with digits in it, and nothing of
either means anything to a shell, to YAML or to Compose.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated

from msgspec import Meta

from lab.model.knobs import CPUS
from lab.model.record import Record
from lab.model.remark import Remark

# The names of these settings in a condition and in a request to the host.
OWN_CPUS, OWN_MEMORY, OWN_VARIABLE = "OWN_CPUS", "OWN_MEMORY", "ENV_"
MEMORY = r"[1-9][0-9]{0,6}[mg]"
PLACE = "{}"
# How many times what a resource has now it gets in a step, and when it is lifted.
STEP, LIFT = 2, 4
MOST = 100_000_000
_Number = Annotated[int, Meta(ge=1, le=MOST)]
_Variable = Annotated[str, Meta(pattern=r"^[A-Z][A-Z0-9_]{0,49}\Z")]
_Text = Annotated[str, Meta(pattern=r"^(?=.*\{\})([A-Za-z0-9 ._:=+,/%@-]|\{\}){1,200}\Z")]


class SettingChange(Record):
    """A setting that is changed to see whether it limits: its value now (None if unknown), with the
    change, and lifted."""

    setting: str
    now: float | str | None
    step: float | str
    lift: float | str
    unit: str = ""


class OwnLever(Record):
    """What lifts one resource, as it is now. All that is given changes together.

    * `variable`: of the environment; its value is `text` with the number `value` for each {}, of at
      most `most`
    * `cpus` and `memory` (512m, 2g): the limits of the container
    """

    variable: _Variable | None = None
    value: _Number | None = None
    text: _Text = PLACE
    most: _Number = MOST
    cpus: Annotated[float, Meta(ge=0.01, le=999)] | None = None
    memory: Annotated[str, Meta(pattern=rf"^{MEMORY}\Z")] | None = None

    def __post_init__(self) -> None:
        if (self.variable, self.cpus, self.memory) == (None, None, None):
            raise ValueError("it is empty; allowed: variable with value, cpus, memory")
        if (self.variable is None) != (self.value is None):
            raise ValueError("variable and value belong together: the value is what it has now")
        if self.value is not None and self.value > self.most:
            raise ValueError(f"value={self.value} is not allowed; allowed: 1..{self.most}")

    @property
    def patterns(self) -> dict[str, str]:
        """The settings of its container, each with a POSIX extended regular expression."""
        patterns = {}
        if self.variable is not None:
            # The only two of the characters of a text that mean something there.
            plain = self.text.replace(".", r"\.").replace("+", r"\+")
            patterns[OWN_VARIABLE + self.variable] = plain.replace(PLACE, "[0-9]{1,9}")
        if self.cpus is not None:
            patterns[OWN_CPUS] = CPUS
        if self.memory is not None:
            patterns[OWN_MEMORY] = MEMORY
        return patterns


class OwnChange(Record):
    """The settings of a container with a step, and lifted, and the numbers that differ. `factor` is
    that of the step where one number changes, None where several do."""

    step: Mapping[str, str]
    lift: Mapping[str, str]
    settings: tuple[SettingChange, ...]
    factor: float | None


class _Part(Record):
    """A number that changes: how it is written in which setting, and its name for people."""

    setting: str
    form: str
    name: str
    now: float
    step: float
    lift: float
    unit: str = ""

    def written(self, number: float) -> str:
        """Without an exponent, which no setting takes."""
        plain = f"{number:.2f}".rstrip("0").rstrip(".")
        return self.form.replace(PLACE, plain)


def change_of(
    lever: OwnLever, host: Mapping[str, str], enough: int | None, cpus: int
) -> OwnChange | Remark:
    """The change of a container that has these settings now, or why there is none. A number of
    which `enough` are known is lifted to that, CPUs to all of the machine's (`cpus`)."""
    parts = [*_parts(lever, host, enough, cpus)]
    for part in parts:
        if part.step <= part.now:
            return Remark("at-most", {"setting": part.name, "value": part.now})
    return OwnChange(
        step={part.setting: part.written(part.step) for part in parts},
        lift={part.setting: part.written(part.lift) for part in parts},
        settings=tuple(SettingChange(p.name, p.now, p.step, p.lift, p.unit) for p in parts),
        factor=parts[0].step / parts[0].now if len(parts) == 1 else None,
    )


def _parts(
    lever: OwnLever, host: Mapping[str, str], enough: int | None, cpus: int
) -> Iterator[_Part]:
    now: float
    if lever.variable is not None and lever.value is not None:
        setting, now = OWN_VARIABLE + lever.variable, lever.value
        shape = r"(\d+)".join(map(re.escape, lever.text.split(PLACE)))
        if changed := re.fullmatch(shape, host.get(setting, "")):
            now = int(changed[1])
        step = min(lever.most, STEP * now)
        lift = max(step, min(lever.most, LIFT * now if enough is None else enough))
        yield _Part(setting, lever.text, lever.variable, now, step, lift)
    if lever.cpus is not None:
        now = float(host.get(OWN_CPUS, lever.cpus))
        yield _Part(OWN_CPUS, PLACE, "cpus", now, min(cpus, STEP * now), cpus)
    if lever.memory is not None:
        given = host.get(OWN_MEMORY, lever.memory)
        now = int(given[:-1]) * (1024 if given.endswith("g") else 1)
        yield _Part(OWN_MEMORY, f"{PLACE}m", "memory", now, STEP * now, LIFT * now, "MiB")
