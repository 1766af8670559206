"""Puts load on a server: the load engines, one trial, the proof that a JVM is warm, demand.

This room starts load engines and reads their files. The room `system` asks the lab's containers.
"""
