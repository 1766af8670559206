"""Measurement to judgement: valid, or the reasons why not. Reaches nothing outside."""

from lab.validate.judge import GAVE_WAY, NO_SUCCESS, judge

__all__ = ["GAVE_WAY", "NO_SUCCESS", "judge"]
