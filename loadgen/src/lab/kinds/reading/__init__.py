"""The reading of words and experiment files.

words and files → settings (texts, and where each came from) → msgspec.Structs → what is to be
measured.
"""

from lab.kinds.reading.load import max_concurrency, no_auto_rate, read_load
from lab.kinds.reading.settings import Asked, Here, Settings
from lab.kinds.reading.target import refuse as refuse_target
from lab.kinds.reading.target import with_secrets
from lab.kinds.reading.words import (
    given_settings,
    needed_profiles,
    read_servers,
    read_words,
    refuse_unknown,
)
