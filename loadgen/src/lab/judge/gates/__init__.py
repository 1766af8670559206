"""Measurement to judgement: valid, or the reasons why not. Reaches nothing outside."""

from lab.judge.gates.judge import GAVE_WAY, NO_ANSWER, NO_SUCCESS, judge
from lab.judge.gates.server import NOT_ITS_OWN

__all__ = ["GAVE_WAY", "NOT_ITS_OWN", "NO_ANSWER", "NO_SUCCESS", "judge"]
