"""What is known of a trial beyond its figures: a code, and the values that its text is made of.

Everything below `report/` makes and reads remarks only. `lab.report.remarks` has a text for each
code, and `lab.judge.checks` says of each what it means for the trial.

In a cell of trials.csv a remark is its code and its values, as
`generator-late by_ms=35.2 allowed_ms=20`, and REMARK_SEPARATOR is between two of them. A space, a
percent sign and a semicolon of a value are written as in an address (%20, %25, %3B).
"""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote, unquote

from msgspec.structs import force_setattr

from lab.errors import harmless
from lab.model.record import Record

Value = str | int | float
REMARK_SEPARATOR = "; "
_CODE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
# What stays as it is in a cell; the rest of ASCII is for other people's words.
_PLAIN = "/:,.@+*=()[]{}<>'\"!?&#$^|\\~`"


class Remark(Record):
    """A code with its values by name. Values are numbers, names, and other people's words, which
    nothing here reads. A fraction has six significant digits."""

    code: str
    values: Mapping[str, Value] = {}

    def __post_init__(self) -> None:
        if not _CODE.fullmatch(self.code):
            raise ValueError(f"{self.code!r} is no code")
        force_setattr(self, "values", {name: _kept(v) for name, v in self.values.items()})

    def __hash__(self) -> int:
        return hash((self.code, *self.values.items()))

    @property
    def cell(self) -> str:
        """As it stands in a cell of a table."""
        return " ".join([self.code, *(f"{n}={_written(v)}" for n, v in self.values.items())])


def cell_of(remarks: Iterable[Remark]) -> str:
    """Remarks as one cell of a table."""
    return REMARK_SEPARATOR.join(remark.cell for remark in remarks)


def remarks_in(cell: str) -> tuple[Remark, ...]:
    """The remarks of a cell. Raises ValueError for what `cell_of` does not write."""
    return tuple(map(_read, cell.split(REMARK_SEPARATOR))) if cell else ()


def _kept(value: Value) -> Value:
    if isinstance(value, str):
        return harmless(value)
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _written(value: Value) -> str:
    if not isinstance(value, str):
        return f"{value:g}" if isinstance(value, float) else str(value)
    text = quote(value, safe=_PLAIN)
    # It stays a text when it is read.
    return text if _number(text) is None else f"%{ord(text[0]):02X}{text[1:]}"


def _read(text: str) -> Remark:
    code, *pairs = text.split(" ")
    values: dict[str, Value] = {}
    for pair in pairs:
        name, equals, written = pair.partition("=")
        if not equals:
            raise ValueError(f"{text!r} is no remark: {pair!r} has no value")
        number = _number(written)
        values[name] = unquote(written) if number is None else number
    return Remark(code, values)


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return None
