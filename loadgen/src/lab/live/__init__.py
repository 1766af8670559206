"""What runs as long as the lab does: the agent with its probe and marks, and the control page."""
