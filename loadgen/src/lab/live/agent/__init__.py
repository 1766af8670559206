"""The agent: shows what clients see, marks trials, watches the toxics. Its numbers are for
dashboards: no row and no verdict takes a latency from here."""
