"""The agent: probes every server for the dashboards, marks trials, watches the toxics.

Its numbers are for dashboards. No row and no verdict takes a latency from here.
"""
