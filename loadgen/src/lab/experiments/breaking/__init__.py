"""The search of `stress`: at how many connections a server breaks, and what gave way there."""
