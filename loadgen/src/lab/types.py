"""The lab's vocabulary: frozen dataclasses that validate themselves. No I/O.

Units are in the names: `_rps` requests per second, `_ms` milliseconds, `_s` seconds.
`None` always means "cannot be told", never zero.
"""

from __future__ import annotations
