"""Concurrency Lab: measures which concurrency model holds, and until which load."""

__version__ = "0.1.0"
