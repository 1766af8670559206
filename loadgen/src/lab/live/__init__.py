"""What runs as long as the lab does: the agent with its probe, and the control page.

Nothing here measures a trial.
"""
