"""The reading of words and experiment files: settings, rules, loads, tables.

words and files → settings (texts, and where each came from) → rules → what is to be measured.
A word and a key of a file that mean the same are read by the same rule. What is wrong gets one
line (WordError) with the place, the given value and the allowed values.
"""

from lab.experiments.reading.load import check_exact, no_auto_rate, read_load
from lab.experiments.reading.profiles import needed_profiles
from lab.experiments.reading.rules import max_concurrency
from lab.experiments.reading.settings import Asked, Here, Key, Settings, Word
from lab.experiments.reading.subject import with_secrets
from lab.experiments.reading.target import refuse as refuse_target
from lab.experiments.reading.words import given_settings, read_servers, read_words, refuse_unknown
