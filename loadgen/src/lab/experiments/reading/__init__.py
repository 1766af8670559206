"""Words of the command line and files of experiments/ as what is to be measured.

words and files → settings (texts, and where each came from) → rules → types.Experiment.
A word and a key of a file that mean the same are read by the same rule; what is wrong gets
one line (WordError) naming the place, what was given and what is allowed.
"""

from lab.experiments.reading.bench import bench_experiment, explain_experiment
from lab.experiments.reading.experiment_file import DensityFile, run_experiment
from lab.experiments.reading.load import no_auto_rate
from lab.experiments.reading.plan import needed_profiles
from lab.experiments.reading.rules import SPARE_DESCRIPTORS, max_concurrency
from lab.experiments.reading.settings import Head, Settings
from lab.experiments.reading.target import notes as target_notes
from lab.experiments.reading.target import refuse as refuse_target
from lab.experiments.reading.words import given_settings, read_servers, read_words, refuse_unknown

__all__ = [
    "SPARE_DESCRIPTORS",
    "DensityFile",
    "Head",
    "Settings",
    "bench_experiment",
    "explain_experiment",
    "given_settings",
    "max_concurrency",
    "needed_profiles",
    "no_auto_rate",
    "read_servers",
    "read_words",
    "refuse_target",
    "refuse_unknown",
    "run_experiment",
    "target_notes",
]
