"""The last part of the page: the conditions, the machine, and how to repeat the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lab.model import Json
from lab.report import settings, words
from lab.report.page import units
from lab.report.page.markup import facts, folded, inline, table
from lab.report.table import NOTHING
from lab.report.words import Content


def what(of: Content) -> str:
    """The run in a few facts."""
    return facts(words.what(of))


def fairness(of: Content) -> str:
    """The settings that are equal for all servers, and the ones that define each model."""
    manifest = of.manifest.fairness
    parts = []
    if manifest.unequal:
        parts.append('<p class="bad">These should be equal and are not: no comparison is fair.</p>')
        parts.append(_by_server("Unequal limits", manifest.unequal))
    own = {name: of for name, of in manifest.own.items() if name not in manifest.unequal}
    if own:
        parts.append("<h3>What makes each model what it is</h3>")
        parts.append(_by_server("The models' own settings", own))
    if manifest.equal:
        parts.append("<h3>Equal for all</h3>")
        rows = [(name, _value(name, value)) for name, value in manifest.equal.items()]
        parts.append(table("Equal for all servers", ("setting", "value"), rows, wide=(1,)))
    return "".join(parts) or "<p>No setting of a server was read.</p>"


def _by_server(label: str, settings: Mapping[str, Mapping[str, Json]]) -> str:
    servers = list(dict.fromkeys(server for of in settings.values() for server in of))
    rows = [
        (name, *(_value(name, of.get(server)) for server in servers))
        for name, of in settings.items()
    ]
    return table(label, ("setting", *servers), rows)


def _value(name: str, of: Json) -> str:
    if isinstance(of, bool):
        return "true" if of else "false"
    if name.endswith("_bytes") and isinstance(of, int):
        return units.data(of)
    if isinstance(of, list | tuple):
        flags = name == "jvm_flags"
        return " ".join(f"`{one}`" for one in of) if flags else ", ".join(map(str, of))
    if isinstance(of, Mapping):
        return "; ".join(f"{part} {_value(part, one)}" for part, one in of.items())
    return NOTHING if of is None else str(of)


def host(of: Content) -> str:
    """The machine, and every image with its id."""
    facts_of = of.manifest.host
    known = facts(
        (name.replace("_", " "), _value(name, value))
        for name, value in facts_of.items()
        if value is not None and not isinstance(value, Mapping | list | tuple)
    )
    parts = [folded("All that is known of the host", known)] if known else []
    images = facts_of.get("images")
    if isinstance(images, Mapping) and images:
        header = ("image", "id", "built from")
        rows = table("Images", header, _images(images), names=1)
        parts.append(folded(f"{len(images)} images", rows))
    return "".join(parts)


def _images(images: Mapping[str, Json]) -> Iterator[tuple[str, str, str]]:
    for name, image in images.items():
        known = image if isinstance(image, Mapping) else {}
        identity = str(known.get("id") or "").removeprefix("sha256:")[:16]
        yield name, identity, str(known.get("built_from") or "pulled, or not recorded")


def again(of: Content) -> str:
    """The commands that run the same again, and that compute the page again."""
    changed = settings.changed(of.manifest)
    command = words.command(of, changed.words)
    commit = of.manifest.versions.get("commit")
    parts = []
    if command:
        checkout = f"git checkout {commit}\n" if commit else ""
        code = inline(f"{checkout}{command}")
        parts.append(f"<p>On a machine with the lab:</p><pre><code>{code}</code></pre>")
        if changed.others:
            parts.append(f"<p>{inline(words.not_brought_back(changed.others))}</p>")
    report = inline(f"make report RUN={of.manifest.run}")
    parts.append(
        f"<p>Compute everything here again from the run's raw data, without the lab:</p>"
        f"<pre><code>{report}</code></pre>"
    )
    return "".join(parts)
