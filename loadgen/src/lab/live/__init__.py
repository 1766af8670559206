"""What runs as long as the lab does: the agent with its probe, and the control page.

Nothing here measures a trial. A bench that the control page starts is a process of its own (`cli`).
"""
