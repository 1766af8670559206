"""The services that run as long as the lab does: the agent with its probe, and the control page."""
