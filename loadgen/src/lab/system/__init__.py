"""Reaches the lab that runs: its servers, Toxiproxy, Prometheus, and the host underneath.

Here is every call over the network, and every change of the lab with its way back. Nothing here
knows of experiments.
"""
