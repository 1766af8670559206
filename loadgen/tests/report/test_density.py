"""The table of what a connection takes."""

from lab.model import PerConnection
from lab.report.density import section
from lab.report.markdown import section as written


def slope(memory: str, value: float | None, *ends: float) -> PerConnection:
    low, high = ends or (None, None)
    name = f"{memory} per connection"
    return PerConnection(name, "a", 0, value, "bytes/connection", low, high, 12, 2000, 8000)


def test_each_memory_of_each_server_is_a_row() -> None:
    slopes = [slope("live heap", 1439.4, 1247.2, 1489.0), slope("resident memory", 3604.0)]
    text = written(section([*slopes, slope("live heap", None)]))
    assert "| a | live heap | 2,000–8,000 | 1,439 [1,247, 1,489] | 12 |" in text
    assert "| a | resident memory | 2,000–8,000 | 3,604 | 12 |" in text
    assert "| a | live heap | 2,000–8,000 | – | 12 |" in text
    # Other kinds have no such section.
    assert written(section([])) == ""
