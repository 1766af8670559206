"""What the lab's images hold, and what is known against it: `make audit` (.ci/audit.sh).

docker export … | audit.py inventory IMAGE SERVERS >image-N.json
    what one image holds; SERVERS is the folder servers/, whose jars are the lab's own
audit.py scan FOLDER RELEASE COMMIT
    of all image-N.json in FOLDER: sbom.cdx.json, and what pip-audit (its output is
    pip-audit.txt) and OSV know
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import sys
import tarfile
import zipfile
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator
from email.parser import Parser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError
from urllib.request import Request, urlopen

# A program of Go's says what it was built of (Go's package debug/buildinfo, since Go 1.18).
GO_MAGIC = b"\xff Go buildinf:"
GO_HEADER = 32
OSV = "https://api.osv.dev"
# What OSV takes at a time.
OSV_BATCH = 1000
PATIENCE_S = 60
PURLS = {
    "Debian": "pkg:deb/debian/{}@{}?arch=source",
    "Go": "pkg:golang/{}@{}",
    "Maven": "pkg:maven/{}@{}",
    "PyPI": "pkg:pypi/{}@{}",
    "jar": "pkg:generic/{}@{}",
    "other": "pkg:generic/{}@{}",
    "image": "pkg:oci/{}@{}",
}
# Lines of findings of one kind that are shown. The others are in found.json.
SHOWN = 20
# Of those not checked so many are named.
NAMED = 3
FOUND, NOT_ALL_CHECKED = 1, 2


# Packages that nobody is asked about, and images that nobody could look at.
OTHER, ABSENT = "other", "image"


class Component(NamedTuple):
    """A package as OSV names it: of Debian the source package, of Maven group:artifact. `jar` is
    one that nobody identifies, with the first digits of its SHA-256 as its version. OTHER is of
    another distribution, ABSENT an image that is not there."""

    kind: str
    name: str
    version: str


def of_debian(status: str) -> Iterator[Component]:
    """The packages in dpkg's status file, by their sources."""
    for paragraph in status.split("\n\n"):
        fields = Parser().parsestr(paragraph)
        if fields["Status"] == "install ok installed":
            source, _, version = str(fields["Source"] or fields["Package"]).partition(" ")
            yield Component("Debian", source, version.strip("()") or str(fields["Version"]))


def of_alpine(installed: str) -> Iterator[Component]:
    """The packages in apk's database."""
    for paragraph in installed.split("\n\n"):
        fields = dict(line.split(":", 1) for line in paragraph.splitlines() if ":" in line)
        if "P" in fields:
            yield Component(OTHER, f"alpine/{fields['P']}", fields.get("V", "unknown"))


def of_python(metadata: str) -> Component:
    """The package of a METADATA file."""
    fields = Parser().parsestr(metadata, headersonly=True)
    name = re.sub(r"[-_.]+", "-", str(fields["Name"])).lower()
    return Component("PyPI", name, str(fields["Version"]))


def of_go(program: bytes) -> Iterator[Component]:
    """The modules of a program, and Go's standard library. Nothing for another program."""
    start = program.find(GO_MAGIC)
    # Bit 1 of the flags: the texts follow the header, each after its length.
    if start < 0 or not program[start + len(GO_MAGIC) + 1] & 2:
        return
    version, at = _text(program, start + GO_HEADER)
    modules, _ = _text(program, at)
    yield Component("Go", "stdlib", version.decode().removeprefix("go").split()[0])
    held: list[Component] = []
    # Between two marks of 16 bytes.
    for line in modules[16:-16].decode().splitlines():
        word, *told = line.split("\t")
        if word in ("dep", "=>"):
            # A replacement is of the module above it.
            del held[len(held) - (word == "=>") :]
            held.append(Component("Go", told[0], "".join(told[1:2]).removeprefix("v")))
    yield from held


def _text(program: bytes, at: int) -> tuple[bytes, int]:
    """A text of Go's build info and where it ends: its length as a varint, then its bytes."""
    length = shift = 0
    while True:
        length |= (program[at] & 0x7F) << shift
        shift += 7
        at += 1
        if program[at - 1] < 0x80:
            return program[at : at + length], at + length


def of_jar(
    name: str, jar: bytes, known: dict[str, Component], own: Container[str] = ()
) -> Iterator[Component]:
    """The jar by its SHA-256, if `known` has it, and else by what it says of itself: a jar can hold
    others. One that says nothing is told as `jar`, but not one of the lab's `own` modules."""
    # Quarkus puts the group before the name.
    if re.sub(r"^(modified-)?(lab\.)?(.*?)(-[\d.]+)?\.jar$", r"\3", name) in own:
        return
    digest = hashlib.sha256(jar).hexdigest()
    if digest in known:
        yield known[digest]
        return
    with zipfile.ZipFile(io.BytesIO(jar)) as files:
        told = [
            files.read(one).decode("latin-1").splitlines()
            for one in files.namelist()
            if re.search(r"META-INF/maven/.*/pom\.properties$", one)
        ]
    for lines in told:
        said = dict(line.split("=", 1) for line in lines if "=" in line)
        if said["groupId"] != "lab":
            yield Component("Maven", f"{said['groupId']}:{said['artifactId']}", said["version"])
    if not told:
        yield Component("jar", name, digest[:12])


def trusted_jars(checksums: Path) -> dict[str, Component]:
    """Maven's trusted checksums, `SHA-256  group/of/it/artifact/version/file`: the jar of each."""
    known = {}
    for line in checksums.read_text().splitlines() if checksums.exists() else ():
        digest, _, path = line.partition("  ")
        *group, artifact, version, file = path.split("/")
        if file.endswith(".jar"):
            known[digest] = Component("Maven", f"{'.'.join(group)}:{artifact}", version)
    return known


def inventory(
    image: tarfile.TarFile, known: dict[str, Component], own: Container[str]
) -> Iterator[Component]:
    """What the file system of an image holds, with repetitions."""
    debian: list[Component] = []
    distribution = "debian"
    for file in image:
        content = image.extractfile(file) if file.isfile() else None
        if content is None:
            continue
        if file.name == "var/lib/dpkg/status":
            debian += of_debian(content.read().decode())
        elif file.name in ("etc/os-release", "usr/lib/os-release"):
            said = re.search(r"^ID=\"?(\w+)", content.read().decode(), re.MULTILINE)
            distribution = said[1] if said else "unknown"
        elif file.name in ("lib/apk/db/installed", "usr/lib/apk/db/installed"):
            yield from of_alpine(content.read().decode())
        elif (
            file.name.endswith("/release")
            and not file.name.startswith("usr/lib/jvm/")
            and b"JAVA_VERSION=" in (told := content.read())
        ):
            # One that no package of Debian brought.
            version = re.search(rb'JAVA_VERSION="([^"]*)"', told)
            yield Component(OTHER, "jdk", version[1].decode() if version else "unknown")
        elif file.name.endswith(".dist-info/METADATA"):
            one = of_python(content.read().decode())
            if one.name != "lab":
                yield one
        elif file.name.endswith(".jar") and file.name.startswith("lab/"):
            yield from of_jar(Path(file.name).name, content.read(), known, own)
        elif file.mode & 0o111 and file.size > 500_000:
            yield from of_go(content.read())
    for one in debian:
        known = distribution == "debian"
        yield one if known else Component(OTHER, f"{distribution}/{one.name}", one.version)


def sbom(held: dict[Component, set[str]], commit: str) -> dict[str, Any]:
    """A CycloneDX 1.6 document of these components, each with the images that hold it."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {"type": "application", "name": "concurrency-lab", "version": commit}
        },
        "components": [
            {
                "type": "library",
                "name": one.name,
                "version": one.version,
                "purl": PURLS[one.kind].format(one.name.replace(":", "/"), one.version),
                "properties": [{"name": "lab:image", "value": image} for image in sorted(images)],
            }
            for one, images in sorted(held.items())
        ],
    }


def pip_audit_says(text: str) -> tuple[set[Component], dict[Component, list[str]], str]:
    """What pip-audit's JSON tells: what it checked, what it found, and why it skipped the first of
    those that it skipped: it ends well, too, where it has skipped all. Raises ValueError,
    LookupError or TypeError where this is none."""
    checked, found, skipped = set(), {}, ""
    for one in json.loads(text)["dependencies"]:
        if "skip_reason" in one:
            skipped = skipped or one["skip_reason"]
        else:
            component = Component("PyPI", one["name"], one["version"])
            checked.add(component)
            if one["vulns"]:
                found[component] = [_vulnerability(of) for of in one["vulns"]]
    return checked, found, skipped


def _vulnerability(told: dict[str, Any]) -> str:
    names = [told["id"], *(one for one in told.get("aliases", ()) if one.startswith("CVE-"))]
    mended = ", ".join(told.get("fix_versions", ()))
    return " = ".join(dict.fromkeys(names)) + (f", mended in {mended}" if mended else "")


def osv_says(asked: list[Component], url: str, release: str) -> dict[Component, list[str]]:
    """What OSV knows of these. Raises OSError where it does not answer, ValueError where its answer
    is none."""
    found = {}
    for start in range(0, len(asked), OSV_BATCH):
        batch = asked[start : start + OSV_BATCH]
        queries = [
            {
                "package": {
                    "ecosystem": f"Debian:{release}" if one.kind == "Debian" else one.kind,
                    "name": one.name,
                },
                "version": one.version,
            }
            for one in batch
        ]
        request = Request(  # noqa: S310  # the address is a maintainer's own
            f"{url}/v1/querybatch",
            json.dumps({"queries": queries}).encode(),
            {"Content-Type": "application/json"},
        )
        with urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310
            results = json.load(answer)["results"]
        if len(results) != len(batch):
            raise ValueError(f"{len(results)} answers to {len(batch)} questions")
        for one, result in zip(batch, results, strict=True):
            # A page of many is a finding all the same.
            if result.get("vulns"):
                found[one] = [vulnerability["id"] for vulnerability in result["vulns"]]
    return found


def scan(folder: Path, url: str, release: str, commit: str) -> int:
    """Write sbom.cdx.json and found.json, and print what is known and what is not. 0: all was
    checked and nothing is known; FOUND; NOT_ALL_CHECKED."""
    held: dict[Component, set[str]] = defaultdict(set)
    for file in sorted(folder.glob("image-*.json")):
        told = json.loads(file.read_text())
        for one in told["components"]:
            held[Component(*one)].add(told["image"])
    (folder / "sbom.cdx.json").write_text(json.dumps(sbom(held, commit), indent=1) + "\n")
    counts = Counter(one.kind for one in held)
    listed = ", ".join(f"{counts[kind]} {kind}" for kind in sorted(counts))
    print(f"SBOM         {folder / 'sbom.cdx.json'}: {len(held)} components: {listed}")

    found: dict[Component, list[str]] = {}
    checked: dict[str, set[Component]] = defaultdict(set)
    reasons: dict[str, str] = {
        "jar": "nobody knows what these jars are",
        OTHER: "OSV is not asked about packages that are not Debian's",
        ABSENT: "not on this machine",
    }
    try:
        checked["PyPI"], found, skipped = pip_audit_says((folder / "pip-audit.txt").read_text())
        reasons["PyPI"] = f"pip-audit: {skipped}" if skipped else "not in the locks"
    except (OSError, ValueError, LookupError, TypeError) as failure:
        reasons["PyPI"] = f"pip-audit did not answer ({failure or type(failure).__name__})"
    asked = [one for one in sorted(held) if one.kind in ("Debian", "Go", "Maven")]
    try:
        found |= osv_says(asked, url, release) if url else {}
        for one in asked if url else ():
            checked[one.kind].add(one)
        missing = "AUDIT_OSV is empty"
    except (OSError, ValueError, LookupError, TypeError) as failure:
        missing = f"{url} did not answer ({_why(failure)})"
    reasons |= dict.fromkeys(("Debian", "Go", "Maven"), missing)
    (folder / "found.json").write_text(
        json.dumps([[*one, of] for one, of in sorted(found.items())], indent=1) + "\n"
    )
    return _told(held, found, checked, reasons)


def _why(failure: Exception) -> str:
    return str(failure.reason if isinstance(failure, URLError) else failure)


def _told(
    held: Iterable[Component],
    found: dict[Component, list[str]],
    checked: dict[str, set[Component]],
    reasons: dict[str, str],
) -> int:
    by_kind: dict[str, set[Component]] = defaultdict(set)
    for one in held:
        by_kind[one.kind].add(one)
    unchecked = 0
    for kind in sorted(by_kind.keys() | checked.keys()):
        against = sorted((one, found[one]) for one in found if one.kind == kind)
        if checked[kind]:
            print(
                f"checked      {kind}: {len(checked[kind])} packages, "
                f"of which {len(against)} have known faults"
            )
        left = sorted(by_kind[kind] - checked[kind])
        if left:
            unchecked += len(left)
            names = ", ".join(f"{one.name} {one.version}" for one in left[:NAMED])
            more = ", …" if len(left) > NAMED else ""
            reason = reasons[kind]
            print(f"NOT CHECKED  {kind}: {len(left)} packages ({names}{more}): {reason}")
        for one, of in against[:SHOWN]:
            print(f"FOUND        {one.kind} {one.name} {one.version}: {'; '.join(of)}")
        if len(against) > SHOWN:
            print(f"FOUND        {kind}: {len(against) - SHOWN} more packages, in found.json")
    print(f"{len(found)} packages with known faults, {unchecked} packages not checked")
    return FOUND if found else NOT_ALL_CHECKED if unchecked else 0


def main(words: list[str]) -> int:
    """Do what these words ask for. Returns the exit status."""
    match words:
        case ["inventory", image, servers]:
            known = trusted_jars(Path(servers, ".mvn/checksums/checksums.sha256"))
            # A server's own jar is `server`, whichever it is.
            poms = [*Path(servers).glob("*/pom.xml"), *Path(servers).glob("*/*/pom.xml")]
            own = {"server", *(pom.parent.name for pom in poms)}
            with tarfile.open(fileobj=sys.stdin.buffer, mode="r|") as files:
                components = sorted(set(inventory(files, known, own)))
            json.dump({"image": image, "components": components}, sys.stdout)
            return 0
        case ["scan", folder, release, commit]:
            return scan(Path(folder), os.environ.get("AUDIT_OSV", OSV), release, commit)
    print("audit.py inventory IMAGE SERVERS | scan FOLDER RELEASE COMMIT", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
