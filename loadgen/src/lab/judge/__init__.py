"""Judges what was measured: gates, predictions, verdicts, intervals, comparisons.

Pure: no file, no network, no clock. The same records give the same judgement.
"""
