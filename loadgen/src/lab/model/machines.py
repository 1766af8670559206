"""Settings of a lab on several machines (compose.swarm.yaml)."""

# The names of the machines, for the agent and the driver. Empty: one machine.
MACHINES = "LAB_MACHINES"
# The addresses of further generators, HOST:PORT with spaces between, for the driver.
GENERATORS = "LAB_GENERATORS"
