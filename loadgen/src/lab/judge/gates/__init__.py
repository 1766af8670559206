"""Measurement to judgement: valid, or the reasons why not.

`trial` judges a whole trial. `server`, `generator`, `parts` and `figures` hold its checks.
"""

from lab.judge.gates.figures import NO_ANSWER, NO_SUCCESS
from lab.judge.gates.server import NOT_ITS_OWN
from lab.judge.gates.trial import GAVE_WAY, judge

__all__ = ["GAVE_WAY", "NOT_ITS_OWN", "NO_ANSWER", "NO_SUCCESS", "judge"]
