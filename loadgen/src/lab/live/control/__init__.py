"""The control page: toxics, server knobs and live numbers, served by the agent on the port that
Compose publishes on 127.0.0.1. See docs/control-page.md.

It measures nothing: numbers come from Prometheus and the agent. Changes go the way of the verbs
(Toxiproxy's API, the servers' management ports).
"""
