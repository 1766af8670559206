"""Measurement to judgement: valid, or the reasons why not. Reaches nothing outside."""

from lab.validate.judge import judge

__all__ = ["judge"]
