"""Runs experiments from start to end, and judges stored ones again: where all rooms meet.

Here is the order of steps, and what a run keeps between them. What a step asks, decides, stores or
prints is in the other rooms.
"""
