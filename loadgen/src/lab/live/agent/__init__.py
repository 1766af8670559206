"""The agent: shows what clients see (the load's own lines, or a probe), marks trials, watches the
toxics.

Its numbers are for dashboards. No row and no verdict takes a latency from here.
"""
