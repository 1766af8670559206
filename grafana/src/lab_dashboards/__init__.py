"""The lab's Grafana dashboards as typed code; ``python -m lab_dashboards`` writes their JSON."""
