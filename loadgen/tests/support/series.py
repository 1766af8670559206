"""Series of a window of ten seconds, as Prometheus would have them."""

from lab.model import Series

OPENS, CLOSES = 1000.0, 1010.0
TIMES = tuple(float(at) for at in range(994, 1017, 2))


def gauge(name: str, value: float, **labels: str) -> Series:
    return Series({"__name__": name, **labels}, TIMES, tuple(value for _ in TIMES))


def counter(name: str, per_second: float, **labels: str) -> Series:
    values = tuple(per_second * (at - TIMES[0]) for at in TIMES)
    return Series({"__name__": name, **labels}, TIMES, values)


def mean_time(name: str, seconds: float, rps: float = 100.0, **labels: str) -> list[Series]:
    total = counter(f"{name}_sum", seconds * rps, **labels)
    return [total, counter(f"{name}_count", rps, **labels)]
