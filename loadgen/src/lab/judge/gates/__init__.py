"""Measurement to judgement: valid, or the reasons why not.

`trial` judges a whole trial. The other modules hold its checks.
"""

from lab.judge.gates.figures import (
    MOST_FAILED,
    NO_ANSWER,
    NO_SUCCESS,
    TOO_SHORT,
    needed_window_s,
    wanted_window_s,
)
from lab.judge.gates.server import NOT_ITS_OWN
from lab.judge.gates.steady import GOODPUT_FELL, LATENCY_ROSE, UNSTEADY
from lab.judge.gates.trial import FAILED_ITSELF, by_accident, judge

__all__ = [
    "FAILED_ITSELF",
    "GOODPUT_FELL",
    "LATENCY_ROSE",
    "MOST_FAILED",
    "NOT_ITS_OWN",
    "NO_ANSWER",
    "NO_SUCCESS",
    "TOO_SHORT",
    "UNSTEADY",
    "by_accident",
    "judge",
    "needed_window_s",
    "wanted_window_s",
]
