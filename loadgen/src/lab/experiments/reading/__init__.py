"""The reading of words and experiment files.

words and files → settings (texts, and where each came from) → msgspec.Structs → what is to be
measured.
"""

from lab.experiments.reading.load import max_concurrency, no_auto_rate, read_load
from lab.experiments.reading.profiles import needed_profiles
from lab.experiments.reading.settings import Asked, Here, Settings
from lab.experiments.reading.subject import with_secrets
from lab.experiments.reading.target import refuse as refuse_target
from lab.experiments.reading.words import given_settings, read_servers, read_words, refuse_unknown
