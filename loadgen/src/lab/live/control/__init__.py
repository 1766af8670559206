"""The control page, served by the agent (docs/control-page.md). It measures nothing: numbers come
from Prometheus and the agent, and changes go the way of the verbs."""
