"""Measurement to judgement: valid, or the reasons why not. Reaches nothing outside."""

from lab.validate.judge import NO_SUCCESS, judge

__all__ = ["NO_SUCCESS", "judge"]
