"""The fairness manifest: what is equal for all servers, and what makes each model what it is."""

from __future__ import annotations

from collections.abc import Mapping

from lab.model import Fairness, Json
from lab.report.blocks import Paragraph, Section, Table
from lab.report.table import NOTHING, data


def section(fairness: Fairness) -> Section:
    loud = "These should be equal and are not: no comparison is fair." if fairness.unequal else ""
    own = _by_server("The models' own settings", _own(fairness))
    equal = [(name, value_text(name, value)) for name, value in fairness.equal.items()]
    header = ("setting", "value")
    return Section(
        "Fairness manifest",
        [
            Paragraph(loud, "bad"),
            _by_server("Unequal limits", fairness.unequal),
            Section("What makes each model what it is", [own]),
            Section("Equal for all", [Table(header, equal, "Equal for all servers", wide=(1,))]),
        ],
        "fairness",
        "No setting of a server was read.",
    )


def _own(of: Fairness) -> Mapping[str, Mapping[str, Json]]:
    """What makes the models, without what should be equal."""
    return {name: values for name, values in of.own.items() if name not in of.unequal}


def _by_server(label: str, settings: Mapping[str, Mapping[str, Json]]) -> Table:
    servers = list(dict.fromkeys(server for of in settings.values() for server in of))
    rows = [
        (name, *(value_text(name, of.get(server)) for server in servers))
        for name, of in settings.items()
    ]
    return Table(("setting", *servers), rows, label)


def value_text(name: str, of: Json) -> str:
    if of is None:
        return NOTHING
    if isinstance(of, bool):
        return "true" if of else "false"
    if name.endswith("_bytes") and isinstance(of, int):
        return data(of)
    if isinstance(of, list | tuple):
        flags = name == "jvm_flags"
        return " ".join(f"`{one}`" for one in of) if flags else " + ".join(map(str, of))
    if isinstance(of, Mapping):
        return f"({'; '.join(f'{part} {value_text(part, one)}' for part, one in of.items())})"
    return str(of)
