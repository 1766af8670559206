"""Puts load on a server: the load engines, one trial, the proof that a JVM is warm, demand.

Here is what starts load engines and reads what they wrote. What asks the lab's containers anything
is in `system`.
"""
