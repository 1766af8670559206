"""The control page: toxics, server knobs, a bench, live numbers and the list of runs, served by
the agent on the port that Compose publishes on 127.0.0.1. See docs/control-page.md.

It measures nothing: numbers come from Prometheus and the agent. Changes go the way of the verbs
(Toxiproxy's API, `lab bench` as a process of its own, the servers' management ports).
"""
