"""What runs as long as the lab does: the agent, and the control page. It measures no trial."""
