"""The fairness manifest: what is equal for all servers, and what makes each model what it is."""

from collections.abc import Mapping

from lab.model import Fairness, Json
from lab.report.blocks import Block, Paragraph, Section, Table
from lab.report.result import Result
from lab.report.text import NOTHING, data


def section(result: Result) -> Section:
    parts = blocks(result.manifest.fairness)
    return Section("Fairness manifest", parts, "fairness", "No setting of a server was read.")


def blocks(fairness: Fairness) -> list[Block]:
    loud = "These should be equal and are not: no comparison is fair." if fairness.unequal else ""
    models = {name: own for name, own in fairness.own.items() if name not in fairness.unequal}
    equal = [(name, value_text(name, value)) for name, value in fairness.equal.items()]
    of_models = _by_server("The models' own settings", models)
    of_all = Table(("setting", "value"), equal, "Equal for all servers")
    return [
        Paragraph(loud, "bad"),
        _by_server("Unequal limits", fairness.unequal),
        Section("What makes each model what it is", [of_models]),
        Section("Equal for all", [of_all]),
    ]


def _by_server(label: str, settings: Mapping[str, Mapping[str, Json]]) -> Table:
    servers = list(dict.fromkeys(server for values in settings.values() for server in values))
    rows = [
        (name, *(value_text(name, values.get(server)) for server in servers))
        for name, values in settings.items()
    ]
    return Table(("setting", *servers), rows, label)


def value_text(name: str, value: Json) -> str:
    match value:
        case None:
            return NOTHING
        case bool():
            return "true" if value else "false"
        case int() if name.endswith("_bytes"):
            return data(value)
        case list() | tuple() if name == "jvm_flags":
            return " ".join(f"`{flag}`" for flag in value)
        case list() | tuple():
            return " + ".join(map(str, value))
        case Mapping():
            parts = (f"{part} {value_text(part, inner)}" for part, inner in value.items())
            return f"({'; '.join(parts)})"
        case _:
            return str(value)
