"""Runs experiments from start to end, and judges stored ones again: where all parts meet.

Here is the order of steps and nothing else. What a step does is in the other rooms.
"""
