"""Ref: what a second of CPU time buys on this machine, measured just before a trial (go/ref)."""

from __future__ import annotations

from lab.model.record import Record

FIGURES = ("ref_compute", "ref_compute_all", "ref_wake", "ref_net")


class Ref(Record):
    """Counts for each second of CPU time. `program` names source, compiler, architecture and how
    many CPUs the program had: only figures of one program are comparable.

    `ref_compute` and `ref_compute_all` are steps of a generator of random numbers, by one thread
    and by one for each CPU; `ref_wake` hand-overs between two threads on two CPUs; `ref_net`
    requests over loopback.
    """

    program: str
    ref_compute: float
    ref_compute_all: float
    ref_wake: float
    ref_net: float
