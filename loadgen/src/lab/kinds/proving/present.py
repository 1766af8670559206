"""The server and the load of an inquiry as they are now, and conditions that differ. Pure."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.judge.compare import MARGIN
from lab.judge.predict import predict
from lab.model import OFFERED, Bound, Condition, OwnLever, Snapshot, ToxicState
from lab.model.knobs import DIRECT, READ_BACK

MOST_CONNECTIONS = 1_000_000
# What as many as there are connections of the load are enough of.
POOLS = ("worker pool", "downstream connections")


@dataclass(frozen=True, slots=True)
class Present:
    """What a lever needs to know: the server as it was before the run, the condition in force now,
    the load, the driver's CPUs (`cores`), how many connections this machine holds, and the `levers`
    of a service that is not the lab's."""

    snapshot: Snapshot
    condition: Condition
    route: str
    concurrency: int
    cores: int
    offered_rps: int | None = None
    most_connections: int = MOST_CONNECTIONS
    levers: Mapping[str, OwnLever] = field(default_factory=dict)

    def lifted_by(self, resource: str) -> str:
        """The resource whose lever lifts this one. What behaves like a pool of a service that is
        not the lab's may be its connections to what it calls."""
        pool, connections = POOLS
        if resource == pool and pool not in self.levers and connections in self.levers:
            return connections
        return resource

    @property
    def cpus(self) -> int:
        """The most CPUs that the server can have: those of its set, which may be all of the
        machine, or as many as the driver where its set is unknown."""
        return self.snapshot.cpu_set or self.cores

    @property
    def shared_cpus(self) -> int | None:
        """The CPUs that server and driver share, and so all parts of the lab; None where each has a
        CPU set of its own."""
        return self.cores if self.snapshot.cpu_set in (None, self.cores) else None

    @property
    def connections(self) -> int:
        """How many connections the load has now."""
        return self.condition.connections or self.concurrency

    def value(self, name: str) -> int | None:
        """The value of a knob, or of a setting of .env (in capitals) that the server reads back;
        None where the model has none of that name."""
        setting = READ_BACK[name][0] if name in READ_BACK else name
        knob = self.condition.knobs.get(setting, self.snapshot.setting(setting))
        return int(self.condition.host.get(name, 0)) or knob

    def host(self, name: str, read_back: str) -> Any:
        """A setting of .env in force: that of the condition, or what the server says of it."""
        given = self.condition.host.get(name)
        return given if given is not None else self.snapshot.settings.get(read_back)

    def bounds(self, condition: Condition) -> tuple[Bound, ...]:
        """The hard bounds of the load under a condition, the tightest first; only what is offered
        of a service that is not the lab's."""
        settings = {**self.snapshot.settings, **condition.knobs}
        if "LOOPS" in condition.host:
            settings["loops"] = int(condition.host["LOOPS"])
        if "BLOCK_THE_LOOP" in condition.host:
            blocked = condition.host["BLOCK_THE_LOOP"]
            settings["block_the_loop"] = blocked != "false" and blocked
        snapshot = copy.replace(self.snapshot, settings=settings)
        if condition.host.get("SERVER_DOWNSTREAM_URL") == DIRECT:
            snapshot = copy.replace(snapshot, toxics=ToxicState())
        connections = condition.connections or self.concurrency
        prediction = predict(self.route, connections, self.offered_rps, snapshot)
        # Whatever holds beside it, no more is answered than is offered.
        return prediction.holding or tuple(b for b in prediction.bounds if b.resource == OFFERED)

    def near(self, condition: Condition, measured_rps: float) -> Bound | None:
        """What binds under a condition so near to a goodput that it hardly rises; None where
        nothing is predicted to."""
        bound = next(iter(self.bounds(condition)), None)
        return bound if bound and bound.rps <= (1 + MARGIN) * measured_rps else None

    def slack(self, resource: str, measured_rps: float) -> bool:
        """True if a resource has a bound of its own that is above what was measured."""
        bounds = [each.rps for each in self.bounds(self.condition) if each.resource == resource]
        return bool(bounds) and bounds[0] > (1 + MARGIN) * measured_rps

    def with_value(self, name: str, to: float) -> Condition:
        """The condition with another value of a knob, or of a setting of .env."""
        if name in READ_BACK:
            return self.with_host(**{name: f"{to:.0f}"})
        return copy.replace(self.condition, knobs={**self.condition.knobs, name: int(to)})

    def with_host(self, **settings: str) -> Condition:
        return copy.replace(self.condition, host={**self.condition.host, **settings})
