"""Reads the dashboards Grafana shows, and asks Prometheus what their panels ask.

One definition serves Grafana, the report and the tests: the classic dashboard JSON. What
Grafana's browser side does to a query (variables, the rate interval) is done here the same
way, so every panel can be drawn and checked on machines without Grafana.
"""
