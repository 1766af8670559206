"""Record: the base of all that the lab keeps, frozen and checked when it is read from a file."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, dataclass_transform

from msgspec import Meta, Struct, field

if TYPE_CHECKING:
    type Json = (
        "bool | int | float | str | list[Json] | tuple[Json, ...] | Mapping[str, Json] | None"
    )
else:
    Json = Any  # Reading takes such a value as it is.
# As large as a container may say: 64 bits.
Whole = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Positive = Annotated[int, Meta(ge=1)]
AboveZero = Annotated[float, Meta(gt=0)]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Record(Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds of a field (`Meta`) are checked where it is read; what several fields must be to each
    other, in `__post_init__`, also where it is made."""

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        return cls.__struct_fields__


def sum_or_none(values: Iterable[float | None]) -> float | None:
    """None if one of them is unknown, or there is none."""
    parts = list(values)
    known = [part for part in parts if part is not None]
    return sum(known) if known and len(known) == len(parts) else None
