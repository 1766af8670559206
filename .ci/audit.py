"""What the lab's images hold, and what OSV knows against it: `make audit` (.ci/audit.sh).

docker export … | audit.py inventory IMAGE SERVERS >image-N.json
    what one image holds; SERVERS is the folder servers/, whose jars are the lab's own
audit.py scan FOLDER RELEASE COMMIT LOCK…
    of all image-N.json in FOLDER and of these locks of pip: sbom.cdx.json and found.json
"""

import hashlib
import io
import json
import os
import re
import sys
import tarfile
import zipfile
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from email.parser import Parser
from itertools import batched
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

# A program of Go's contains what it was built of (Go's package debug/buildinfo, since Go 1.18).
GO_MAGIC = b"\xff Go buildinf:"
GO_HEADER = 32
# The address of OSV, and the largest number of questions that it takes in one request.
OSV = "https://api.osv.dev"
OSV_BATCH = 1000
PATIENCE_S = 60
# The kinds of packages that OSV is asked about, and how a CycloneDX document names them.
PURLS = {
    "Debian": "pkg:deb/debian/{}@{}?arch=source",
    "Go": "pkg:golang/{}@{}",
    "Maven": "pkg:maven/{}@{}",
    "PyPI": "pkg:pypi/{}@{}",
}
# Other kinds, and why they are not checked.
OTHER, JAR, ABSENT = "other", "jar", "image"
REASONS = {
    OTHER: "OSV is not asked about packages that are not Debian's",
    JAR: "unknown jars",
    ABSENT: "not on this machine",
}
# How many of the packages that are not checked are named.
NAMED = 3
FOUND, NOT_ALL_CHECKED = 1, 2


class Component(NamedTuple):
    """A package as OSV names it: the source package of Debian, group:artifact of Maven. The version
    of a JAR is the begin of its SHA-256."""

    kind: str
    name: str
    version: str


def of_debian(status: str, distribution: str = "debian") -> Iterator[Component]:
    """The packages in dpkg's status file, by their sources."""
    for paragraph in status.split("\n\n"):
        fields = Parser().parsestr(paragraph)
        if fields["Status"] != "install ok installed":
            continue
        source, _, version = str(fields["Source"] or fields["Package"]).partition(" ")
        package = Component("Debian", source, version.strip("()") or str(fields["Version"]))
        if distribution != "debian":
            package = Component(OTHER, f"{distribution}/{source}", package.version)
        yield package


def of_alpine(installed: str) -> Iterator[Component]:
    """The packages in apk's database."""
    for name, version in re.findall(r"(?m)^P:(.+)\nV:(.+)$", installed):
        yield Component(OTHER, f"alpine/{name}", version)


def of_python(metadata: str) -> Iterator[Component]:
    """The package of a METADATA file, unless it is the lab."""
    fields = Parser().parsestr(metadata, headersonly=True)
    name = re.sub(r"[-_.]+", "-", str(fields["Name"])).lower()
    if name != "lab":
        yield Component("PyPI", name, str(fields["Version"]))


def of_go(program: bytes) -> Iterator[Component]:
    """The modules of a program, and Go's standard library. Nothing for another program."""
    start = program.find(GO_MAGIC)
    # Bit 1 of the flags: the texts follow the header, each after its length.
    if start < 0 or not program[start + len(GO_MAGIC) + 1] & 2:
        return
    version, at = _text(program, start + GO_HEADER)
    modules, _ = _text(program, at)
    yield Component("Go", "stdlib", version.decode().removeprefix("go").split()[0])
    # Between two marks of 16 bytes. A replacement follows the module that it replaces.
    lines = re.sub(r"(?m)^dep\t.*\n=>", "dep", modules[16:-16].decode())
    for name, held in re.findall(r"(?m)^dep\t([^\t\n]+)\tv([^\t\n]+)", lines):
        yield Component("Go", name, held)


def _text(program: bytes, at: int) -> tuple[bytes, int]:
    """A text of Go's build info and where it ends: its length as a varint, then its bytes."""
    length = shift = 0
    while True:
        byte = program[at]
        length |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if byte < 0x80:
            return program[at : at + length], at + length


def of_jar(
    name: str, jar: bytes, known: Mapping[str, Component], own: Container[str] = ()
) -> Iterator[Component]:
    """The jar by its SHA-256, if `known` has it, and else by Maven's files in it: a jar can contain
    others. Nothing for one of the lab's `own` modules."""
    # Quarkus puts the group before the name.
    if re.sub(r"^(modified-)?(lab\.)?(.*?)(-[\d.]+)?\.jar$", r"\3", name) in own:
        return
    digest = hashlib.sha256(jar).hexdigest()
    if digest in known:
        yield known[digest]
        return
    with zipfile.ZipFile(io.BytesIO(jar)) as files:
        inside = [
            dict(re.findall(r"(?m)^(\w+)=(\S*)", files.read(each).decode("latin-1")))
            for each in files.namelist()
            if re.search(r"META-INF/maven/.*/pom\.properties$", each)
        ]
    for pom in inside:
        if pom["groupId"] != "lab":
            yield Component("Maven", f"{pom['groupId']}:{pom['artifactId']}", pom["version"])
    if not inside:
        yield Component(JAR, name, digest[:12])


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
    image: tarfile.TarFile, known: Mapping[str, Component], own: Container[str]
) -> Iterator[Component]:
    """What the file system of an image contains, with repetitions."""
    status, distribution = "", "debian"
    for file in image:
        content = image.extractfile(file) if file.isfile() else None
        if content is None:
            continue
        name = file.name
        if name == "var/lib/dpkg/status":
            status = content.read().decode()
        elif name in ("etc/os-release", "usr/lib/os-release"):
            [distribution] = re.findall(r'(?m)^ID="?(\w+)', content.read().decode()) or ["unknown"]
        elif name in ("lib/apk/db/installed", "usr/lib/apk/db/installed"):
            yield from of_alpine(content.read().decode())
        elif name.endswith("/release") and not name.startswith("usr/lib/jvm/"):
            # A JDK that no package of Debian brought.
            for version in re.findall(rb'JAVA_VERSION="([^"]*)"', content.read()):
                yield Component(OTHER, "jdk", version.decode())
        elif name.endswith(".dist-info/METADATA"):
            yield from of_python(content.read().decode())
        elif name.endswith(".jar") and name.startswith("lab/"):
            yield from of_jar(Path(name).name, content.read(), known, own)
        elif file.mode & 0o111 and file.size > 500_000:
            yield from of_go(content.read())
    yield from of_debian(status, distribution)


def sbom(held: Mapping[Component, set[str]], commit: str) -> dict[str, Any]:
    """A CycloneDX 1.6 document of these components, each with the images and locks it is in."""
    subject = {"type": "application", "name": "concurrency-lab", "version": commit}
    components = [
        {
            "type": "library",
            "name": each.name,
            "version": each.version,
            "purl": PURLS.get(each.kind, "pkg:generic/{}@{}").format(
                each.name.replace(":", "/"), each.version
            ),
            "properties": [{"name": "lab:image", "value": image} for image in sorted(images)],
        }
        for each, images in sorted(held.items())
    ]
    document = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1}
    return {**document, "metadata": {"component": subject}, "components": components}


def osv_faults(asked: list[Component], url: str, release: str) -> dict[Component, list[str]]:
    """The faults of these that OSV knows. Raises OSError if it does not answer, ValueError or
    LookupError for another answer."""
    found = {}
    for batch in batched(asked, OSV_BATCH, strict=False):
        queries = [
            {
                "package": {
                    "ecosystem": f"Debian:{release}" if each.kind == "Debian" else each.kind,
                    "name": each.name,
                },
                "version": each.version,
            }
            for each in batch
        ]
        request = Request(  # noqa: S310  # the address is a maintainer's own
            f"{url}/v1/querybatch",
            json.dumps({"queries": queries}).encode(),
            {"Content-Type": "application/json"},
        )
        with urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310
            results = json.load(answer)["results"]
        for each, result in zip(batch, results, strict=True):
            # The first page of many is a finding, too.
            if result.get("vulns"):
                found[each] = [fault["id"] for fault in result["vulns"]]
    return found


def scan(folder: Path, url: str, release: str, commit: str, locks: list[str]) -> int:
    """Write sbom.cdx.json and found.json, and print what is known and what is not. 0: all was
    checked and nothing is known; FOUND; NOT_ALL_CHECKED."""
    held: dict[Component, set[str]] = defaultdict(set)
    for file in sorted(folder.glob("image-*.json")):
        image = json.loads(file.read_text())
        for each in image["components"]:
            held[Component(*each)].add(image["image"])
    for lock in map(Path, locks):
        for name, version in re.findall(r"(?m)^([a-z0-9-]+)==([^\s;]+)", lock.read_text()):
            held[Component("PyPI", name, version)].add(lock.name)
    (folder / "sbom.cdx.json").write_text(json.dumps(sbom(held, commit), indent=1) + "\n")
    print(f"SBOM         {folder / 'sbom.cdx.json'}: {len(held)} components")
    asked = [each for each in sorted(held) if each.kind in PURLS]
    found: dict[Component, list[str]] = {}
    problem = "" if url else "AUDIT_OSV is empty"
    try:
        found = osv_faults(asked, url, release) if url else {}
    except (OSError, ValueError, LookupError, TypeError) as failure:
        problem = f"{url} did not answer ({failure})"
    lines = json.dumps([[*each, faults] for each, faults in found.items()], indent=1)
    (folder / "found.json").write_text(lines + "\n")
    unchecked = 0
    for kind in sorted({each.kind for each in held}):
        packages = [each for each in sorted(held) if each.kind == kind]
        reason = problem if kind in PURLS else REASONS[kind]
        if reason:
            unchecked += len(packages)
            names = ", ".join(f"{each.name} {each.version}" for each in packages[:NAMED])
            more = ", …" if len(packages) > NAMED else ""
            print(f"NOT CHECKED  {kind}: {len(packages)} packages ({names}{more}): {reason}")
        else:
            print(f"checked      {kind}: {len(packages)} packages")
    for each, faults in found.items():
        print(f"FOUND        {each.kind} {each.name} {each.version}: {'; '.join(faults)}")
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
        case ["scan", folder, release, commit, *locks]:
            return scan(Path(folder), os.environ.get("AUDIT_OSV", OSV), release, commit, locks)
    print("audit.py inventory IMAGE SERVERS | scan FOLDER RELEASE COMMIT LOCK…", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
