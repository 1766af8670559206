"""Record: the base of all that the lab keeps, frozen and checked when it is read from a file."""

from typing import Annotated, dataclass_transform

from msgspec import Meta, Struct, field

Positive = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Record(Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds of a field (`Meta`) are checked where it is read; what several fields must be to each
    other, in `__post_init__`, also where it is made."""
