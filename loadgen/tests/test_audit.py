"""`make audit`: what an image contains, and that what was not checked is reported."""

import hashlib
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import Request

import pytest

from support.repo import REPO, script

audit = script("audit")
Component = audit.Component
# The exit status and the output of a scan that asks this address.
type Scan = Callable[[str], tuple[int, str]]

STATUS = """Package: libc6
Status: install ok installed
Version: 2.41-12
Source: glibc

Package: libgcc-s1
Status: install ok installed
Version: 14.2.0-19
Source: gcc-14 (14.2.0-19.1)

Package: wrk
Status: install ok installed
Version: 4.1.0-4
Description: it loads
 a server

Package: gone
Status: deinstall ok config-files
Version: 1
"""
MODULES = (
    "path\texample.org/x\nmod\texample.org/x\t(devel)\t\n"
    "dep\tgolang.org/x/net\tv0.50.0\th1:a=\n"
    "dep\texample.org/old\tv1.0.0\n=>\texample.org/new\tv1.2.3\th1:b=\nbuild\t-compiler=gc\n"
    + "#"
    * 200
)


def text(content: bytes) -> bytes:
    """As Go's linker writes it: its length as a varint, then the text."""
    length, written = len(content), b""
    while length >= 0x80:
        written += bytes([length & 0x7F | 0x80])
        length >>= 7
    return written + bytes([length]) + content


def program(flags: int = 2) -> bytes:
    header = (audit.GO_MAGIC + bytes([8, flags])).ljust(audit.GO_HEADER, b"\0")
    mark = b"0123456789abcdef"
    return b"\x7fELF" + header + text(b"go1.27.4") + text(mark + MODULES.encode() + mark)


def jar(name: str, content: str = "") -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as out:
        out.writestr(name, content)
    return written.getvalue()


IDENTIFIED = jar(
    "META-INF/maven/a/b/pom.properties", "#x\ngroupId=a.b\nartifactId=c\nversion=1.0\n"
)
OWN = jar("META-INF/maven/lab/contract/pom.properties", "groupId=lab\nartifactId=c\nversion=1\n")
UNKNOWN = jar("A.class")
KNOWN = jar("B.class")


SUMS = (
    f"{hashlib.sha256(KNOWN).hexdigest()}  org/example/known/7.0/known-7.0.jar\nff  a/c/1/c.pom\n"
)
GO = ["Go stdlib 1.27.4", "Go golang.org/x/net 0.50.0", "Go example.org/new 1.2.3"]
DEBIAN = ["Debian glibc 2.41-12", "Debian gcc-14 14.2.0-19.1", "Debian wrk 4.1.0-4"]
JDK = b'JAVA_VERSION="25.0.1"\n'
APK = b"C:Q1\nP:musl\nV:1.2.5-r0\n\nP:busybox\nV:1.37\n\n"


def image(files: dict[str, bytes]) -> io.BytesIO:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as out:
        for name, content in files.items():
            file = tarfile.TarInfo(name)
            file.size, file.mode = len(content), 0o755
            out.addfile(file, io.BytesIO(content))
    written.seek(0)
    return written


@pytest.fixture
def known(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "sums").write_text(SUMS)
    assert audit.trusted_jars(tmp_path / "none") == {}
    return audit.trusted_jars(tmp_path / "sums")


@pytest.mark.parametrize(
    ("name", "content", "held"),
    [
        ("etc/passwd", b"", []),
        ("var/lib/dpkg/status", STATUS.encode(), DEBIAN),
        ("opt/lab/Some_Thing.dist-info/METADATA", b"Name: Some_Thing\nVersion: 2.0\n\nText",
         ["PyPI some-thing 2.0"]),
        ("opt/lab/lab.dist-info/METADATA", b"Name: lab\nVersion: 0.1.0\n", []),
        # A program is large, and tells its modules after a header.
        ("usr/bin/x", program().ljust(600_000, b"\0"), GO),
        ("usr/bin/x", program(flags=0).ljust(600_000, b"\0"), []),
        ("usr/bin/x", b"\x7fELF".ljust(600_000, b"\0"), []),
        ("usr/bin/small", program(), []),
        # A jar is known by its sum, or by its own files.
        ("lab/app/lib/k.jar", KNOWN, ["Maven org.example:known 7.0"]),
        ("lab/app/lib/s.jar", IDENTIFIED, ["Maven a.b:c 1.0"]),
        ("lab/app/lib/u.jar", UNKNOWN, [f"jar u.jar {hashlib.sha256(UNKNOWN).hexdigest()[:12]}"]),
        ("usr/share/java/elses.jar", IDENTIFIED, []),
        ("lab/app/lib/own.jar", OWN, []),
        *((f"lab/app/lib/{name}.jar", UNKNOWN, [])
          for name in ("n", "n-1.0.0", "lab.n-1.0.0", "modified-lab.n-1.0.0")),
        # OSV is not asked about what is not Debian's.
        ("lib/apk/db/installed", APK, ["other alpine/musl 1.2.5-r0", "other alpine/busybox 1.37"]),
        ("opt/java/openjdk/release", JDK, ["other jdk 25.0.1"]),
        ("usr/lib/jvm/java-25/release", JDK, []),
    ],
)  # fmt: skip
def test_an_image_is_read_file_by_file(
    name: str, content: bytes, held: list[str], known: dict[str, Any]
) -> None:
    with tarfile.open(fileobj=image({name: content}), mode="r|") as opened:
        assert [" ".join(each) for each in audit.inventory(opened, known, {"n"})] == held


def test_packages_of_ubuntu_are_none_of_debian() -> None:
    files = {"etc/os-release": b'NAME="U"\nID=ubuntu\n', "var/lib/dpkg/status": STATUS.encode()}
    with tarfile.open(fileobj=image(files), mode="r|") as opened:
        held = [" ".join(each) for each in audit.inventory(opened, {}, ())]
    assert held == [line.replace("Debian ", "other ubuntu/") for line in DEBIAN]


def test_a_real_program_of_go_is_read() -> None:
    stdlib, *modules = audit.of_go(Path("/usr/local/bin/pacer").read_bytes())
    required = (REPO / "go/go.mod").read_text()
    assert stdlib.name == "stdlib"
    assert modules
    assert [each for each in modules if f"{each.name} v{each.version}" not in required] == []


FAULTY = Component("Go", "stdlib", "1.20")
HELD = [FAULTY, Component("Debian", "glibc", "2.41-12"), Component("Maven", "a.b:c", "1.0")]
LOCK = "starlette==0.1 ; python_version < '4' \\\n    --hash=sha256:ab\n    # via lab\n"


def write(folder: Path, number: int, *components: tuple[str, str, str]) -> None:
    record = {"image": f"lab/{number}", "components": components}
    (folder / f"image-{number}.json").write_text(json.dumps(record))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, 1, *HELD)
    write(tmp_path, 2, FAULTY)
    (tmp_path / "requirements.txt").write_text(LOCK)
    return tmp_path


@pytest.fixture
def scanned(folder: Path, capsys: pytest.CaptureFixture[str]) -> Scan:
    locks = [str(folder / "requirements.txt")]
    return lambda url: (audit.scan(folder, url, "13", "abc", locks), capsys.readouterr().out)


class Osv:
    """OSV's querybatch: an answer for each question, in their order, unless `missing` are."""

    url = "http://osv"

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.faulty: str | None = None
        self.missing = 0

    def answer(self, request: Request, timeout: float) -> io.BytesIO:
        assert request.full_url == f"{self.url}/v1/querybatch"
        self.asked = json.loads(request.data)["queries"]
        found = {"vulns": [{"id": "GO-1"}, {"id": "GO-2"}]}
        results = [found if each["package"]["name"] == self.faulty else {} for each in self.asked]
        return io.BytesIO(json.dumps({"results": results[self.missing :]}).encode())


@pytest.fixture
def osv(monkeypatch: pytest.MonkeyPatch) -> Osv:
    found = Osv()
    monkeypatch.setattr(audit, "urlopen", found.answer)
    return found


def test_every_package_is_asked_for_once(scanned: Scan, osv: Osv) -> None:
    status, printed = scanned(osv.url)
    assert status == 0
    assert printed.endswith("\n0 packages with known faults, 0 packages not checked\n")
    assert osv.asked == [
        {"package": {"ecosystem": "Debian:13", "name": "glibc"}, "version": "2.41-12"},
        {"package": {"ecosystem": "Go", "name": "stdlib"}, "version": "1.20"},
        {"package": {"ecosystem": "Maven", "name": "a.b:c"}, "version": "1.0"},
        {"package": {"ecosystem": "PyPI", "name": "starlette"}, "version": "0.1"},
    ]
    # Nothing is checked if an answer is missing.
    osv.missing = 1
    status, printed = scanned(osv.url)
    assert status == audit.NOT_ALL_CHECKED
    assert "\nNOT CHECKED  Go: 1 packages (stdlib 1.20): http://osv did not answer (" in printed


def test_what_is_known_is_a_failure(folder: Path, scanned: Scan, osv: Osv) -> None:
    osv.faulty = "stdlib"
    status, printed = scanned(osv.url)
    assert status == audit.FOUND
    assert "\nFOUND        Go stdlib 1.20: GO-1; GO-2\n" in printed
    assert printed.endswith("\n1 packages with known faults, 0 packages not checked\n")
    assert json.loads((folder / "found.json").read_text()) == [[*FAULTY, ["GO-1", "GO-2"]]]


@pytest.mark.parametrize(
    ("url", "reason"),
    [("http://127.0.0.1:9", "http://127.0.0.1:9 did not answer ("), ("", "AUDIT_OSV is empty")],
)
def test_what_could_not_be_checked_is_no_success(scanned: Scan, url: str, reason: str) -> None:
    status, printed = scanned(url)
    assert status == audit.NOT_ALL_CHECKED
    for kind, name in (("Debian", "glibc 2.41-12"), ("PyPI", "starlette 0.1")):
        assert f"\nNOT CHECKED  {kind}: 1 packages ({name}): {reason}" in printed
    assert printed.endswith("\n0 packages with known faults, 4 packages not checked\n")


@pytest.mark.parametrize("kind", audit.REASONS)
def test_a_package_of_another_kind_is_not_checked(
    folder: Path, scanned: Scan, osv: Osv, kind: str
) -> None:
    write(folder, 3, (kind, "x", "0123456789ab"))
    status, printed = scanned(osv.url)
    assert status == audit.NOT_ALL_CHECKED
    reason = audit.REASONS[kind]
    assert f"\nNOT CHECKED  {kind}: 1 packages (x 0123456789ab): {reason}\n" in printed


def test_the_sbom_names_each_package_once_with_the_images_that_hold_it(
    folder: Path, scanned: Scan
) -> None:
    scanned("")
    document = json.loads((folder / "sbom.cdx.json").read_text())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert document["metadata"]["component"]["version"] == "abc"
    images = {
        each["purl"]: [image["value"] for image in each["properties"]]
        for each in document["components"]
    }
    assert images == {
        "pkg:deb/debian/glibc@2.41-12?arch=source": ["lab/1"],
        "pkg:golang/stdlib@1.20": ["lab/1", "lab/2"],
        "pkg:maven/a.b/c@1.0": ["lab/1"],
        "pkg:pypi/starlette@0.1": ["requirements.txt"],
    }


def test_as_a_program_it_reads_an_image_and_refuses_other_words() -> None:
    command = [sys.executable, str(REPO / ".ci/audit.py")]
    exported = image({"var/lib/dpkg/status": STATUS.encode()}).getvalue()
    words = [*command, "inventory", "lab/a:1", "none"]
    done = subprocess.run(words, input=exported, capture_output=True, check=True)
    record = json.loads(done.stdout)
    assert (record["image"], len(record["components"])) == ("lab/a:1", 3)
    refused = subprocess.run([*command, "x"], capture_output=True, check=False)
    assert refused.returncode == 2
    assert refused.stderr.count(b"\n") == 1
