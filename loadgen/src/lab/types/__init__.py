"""The lab's vocabulary: frozen dataclasses that validate themselves. No I/O.

Units are in the names: `_rps` requests per second, `_ms` milliseconds, `_s` seconds.
`None` always means "cannot be told", never zero. Times are aware and in UTC.
"""

from lab.types.drawn import LEAST_BEYOND, Curve, Curves, PanelAnswers, PanelLine, Panels
from lab.types.experiment import (
    KINDS,
    MODES,
    Endurance,
    Experiment,
    Faults,
    Json,
    Kind,
    Mode,
    Objective,
    Spike,
    Stress,
    ToxicStep,
    TrialPlan,
)
from lab.types.observation import Observation, Series, bucket_quantile
from lab.types.result import (
    Counts,
    Finding,
    Judgement,
    Latency,
    Measurement,
    Reading,
    Row,
)
from lab.types.trial import (
    Fairness,
    Identity,
    Peak,
    ScriptedToxic,
    Snapshot,
    ToxicState,
    TrialRecord,
    Usage,
    WarmCycle,
    Warmth,
)

__all__ = [
    "KINDS",
    "LEAST_BEYOND",
    "MODES",
    "Counts",
    "Curve",
    "Curves",
    "Endurance",
    "Experiment",
    "Fairness",
    "Faults",
    "Finding",
    "Identity",
    "Json",
    "Judgement",
    "Kind",
    "Latency",
    "Measurement",
    "Mode",
    "Objective",
    "Observation",
    "PanelAnswers",
    "PanelLine",
    "Panels",
    "Peak",
    "Reading",
    "Row",
    "ScriptedToxic",
    "Series",
    "Snapshot",
    "Spike",
    "Stress",
    "ToxicState",
    "ToxicStep",
    "TrialPlan",
    "TrialRecord",
    "Usage",
    "WarmCycle",
    "Warmth",
    "bucket_quantile",
]
