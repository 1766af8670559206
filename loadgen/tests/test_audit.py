"""`make audit`: what an image is found to hold, and that what was not checked is said."""

import hashlib
import io
import json
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from support.repo import REPO, script

audit = script("audit")
# Of an OSV by its address: the status, and what is printed.
type Scan = Callable[[str], tuple[int, str]]
Component = audit.Component

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


def text(of: bytes) -> bytes:
    """As Go's linker writes it down: its length as a varint, then the text."""
    length, written = len(of), b""
    while length >= 0x80:
        written += bytes([length & 0x7F | 0x80])
        length >>= 7
    return written + bytes([length]) + of


def program(modules: str, flags: int = 2) -> bytes:
    header = (audit.GO_MAGIC + bytes([8, flags])).ljust(audit.GO_HEADER, b"\0")
    mark = b"0123456789abcdef"
    told = text(b"go1.27.4") + text(mark + modules.encode() + mark)
    return b"\x7fELF" + b"\0" * 60 + header + told


MODULES = (
    "path\texample.org/x\nmod\texample.org/x\t(devel)\t\n"
    "dep\tgolang.org/x/net\tv0.50.0\th1:a=\n"
    "dep\texample.org/old\tv1.0.0\n=>\texample.org/new\tv1.2.3\th1:b=\nbuild\t-compiler=gc\n"
    + "#"
    * 200
)


def jar(name: str, content: str = "") -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as out:
        out.writestr(name, content)
    return written.getvalue()


SAYS = jar("META-INF/maven/a.b/c/pom.properties", "#x\ngroupId=a.b\nartifactId=c\nversion=1.0\n")
OWN = jar("META-INF/maven/lab/contract/pom.properties", "groupId=lab\nartifactId=c\nversion=1\n")
SAYS_NOTHING = jar("A.class")
KNOWN = jar("B.class")


def written_image(files: dict[str, bytes]) -> io.BytesIO:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as out:
        for name, content in files.items():
            file = tarfile.TarInfo(name)
            file.size, file.mode = len(content), 0o755
            out.addfile(file, io.BytesIO(content))
    written.seek(0)
    return written


def kinds_and_names(files: dict[str, bytes]) -> list[tuple[str, str]]:
    """What an image of these files is found to hold."""
    with tarfile.open(fileobj=written_image(files), mode="r|") as image:
        return [(held.kind, held.name) for held in audit.inventory(image, {}, ())]


def test_packages_of_debian_are_told_by_their_sources() -> None:
    packages = (("glibc", "2.41-12"), ("gcc-14", "14.2.0-19.1"), ("wrk", "4.1.0-4"))
    assert list(audit.of_debian(STATUS)) == [Component("Debian", *package) for package in packages]


def test_a_program_of_gos_tells_its_modules_and_the_standard_library() -> None:
    modules = (("stdlib", "1.27.4"), ("golang.org/x/net", "0.50.0"), ("example.org/new", "1.2.3"))
    assert list(audit.of_go(program(MODULES))) == [Component("Go", *module) for module in modules]
    for other in (b"\x7fELF", b"", program(MODULES, flags=0)):
        assert list(audit.of_go(other)) == []
    # A real one.
    held = list(audit.of_go(Path("/usr/local/bin/pacer").read_bytes()))
    required = (REPO / "go/go.mod").read_text()
    assert held[0].name == "stdlib"
    assert len(held) > 1
    assert [one for one in held[1:] if f"{one.name} v{one.version}" not in required] == []


def test_a_jar_is_what_its_sum_says_else_what_it_says_itself(tmp_path: Path) -> None:
    sums = tmp_path / "sums"
    path = "org/example/known/7.0/known-7.0.jar"
    sums.write_text(f"{hashlib.sha256(KNOWN).hexdigest()}  {path}\nff  a/b/c/1/c-1.pom\n")
    known = audit.trusted_jars(sums)
    digest = hashlib.sha256(SAYS_NOTHING).hexdigest()[:12]
    for name, content, held in (
        ("k.jar", KNOWN, [Component("Maven", "org.example:known", "7.0")]),
        ("s.jar", SAYS, [Component("Maven", "a.b:c", "1.0")]),
        ("own.jar", OWN, []),
        ("n.jar", SAYS_NOTHING, [Component("jar", "n.jar", digest)]),
    ):
        assert list(audit.of_jar(name, content, known)) == held
    for name in ("n.jar", "n-1.0.0.jar", "lab.n-1.0.0.jar", "modified-lab.n-1.0.0.jar"):
        assert list(audit.of_jar(name, SAYS_NOTHING, known, {"n"})) == []
    assert audit.trusted_jars(tmp_path / "none") == {}


def test_an_image_is_read_file_by_file() -> None:
    files = {
        "var/lib/dpkg/status": STATUS.encode(),
        "opt/lab/Some_Thing.dist-info/METADATA": b"Name: Some_Thing\nVersion: 2.0\n\nText",
        "opt/lab/lab.dist-info/METADATA": b"Name: lab\nVersion: 0.1.0\n",
        "lab/app/lib/c.jar": SAYS,
        "usr/share/java/elses.jar": SAYS,
        "usr/bin/x": program(MODULES).ljust(600_000, b"\0"),
        "usr/bin/small": program(MODULES),
        "etc/passwd": b"",
    }
    kinds = [kind for kind, _ in kinds_and_names(files)]
    assert kinds == ["PyPI", "Maven"] + ["Go"] * 3 + ["Debian"] * 3


def test_what_is_not_debians_is_not_asked_for_as_if_it_were() -> None:
    ubuntu = {
        "etc/os-release": b'NAME="Ubuntu"\nID=ubuntu\nVERSION_ID="24.04"\n',
        "var/lib/dpkg/status": STATUS.encode(),
        "opt/java/openjdk/release": b'JAVA_VERSION="25.0.1"\n',
    }
    alpine = {"lib/apk/db/installed": b"C:Q1\nP:musl\nV:1.2.5-r0\n\nP:busybox\nV:1.37\n\n"}
    debian = {"usr/lib/jvm/java-25/release": b'JAVA_VERSION="25.0.1"\n'}
    of_ubuntu = ["jdk", "ubuntu/glibc", "ubuntu/gcc-14", "ubuntu/wrk"]
    assert kinds_and_names(ubuntu) == [("other", name) for name in of_ubuntu]
    assert kinds_and_names(alpine) == [("other", "alpine/musl"), ("other", "alpine/busybox")]
    assert kinds_and_names(debian) == []


# --- what is asked ------------------------------------------------------------------------

FAULTY = Component("Go", "stdlib", "1.20")
HELD = [
    FAULTY,
    Component("Debian", "glibc", "2.41-12"),
    Component("Maven", "a.b:c", "1.0"),
    Component("PyPI", "starlette", "0.1"),
]
PYPI: dict[str, Any] = {
    "dependencies": [
        {"name": "starlette", "version": "0.1", "vulns": []},
        {"name": "odd", "skip_reason": "not there"},
    ]
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "image-1.json").write_text(json.dumps({"image": "lab/a:1", "components": HELD}))
    (tmp_path / "image-2.json").write_text(json.dumps({"image": "lab/b:1", "components": [FAULTY]}))
    (tmp_path / "pip-audit.txt").write_text(json.dumps(PYPI))
    return tmp_path


@pytest.fixture
def scanned(folder: Path, capsys: pytest.CaptureFixture[str]) -> Scan:
    return lambda osv: (audit.scan(folder, osv, "13", "abc"), capsys.readouterr().out)


class Osv(BaseHTTPRequestHandler):
    """OSV's querybatch: an answer for each question, in their order."""

    asked: list[dict[str, Any]]
    faulty: str | None
    answers = True

    def do_POST(self) -> None:
        [*queries] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
        type(self).asked += queries
        found = {"vulns": [{"id": "GO-1"}, {"id": "GO-2"}]}
        results = [found if query["package"]["name"] == self.faulty else {} for query in queries]
        self.send_response(200 if self.path == "/v1/querybatch" else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"results": results if self.answers else results[1:]}).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def osv() -> Iterator[str]:
    Osv.asked, Osv.faulty, Osv.answers = [], None, True
    server = HTTPServer(("127.0.0.1", 0), Osv)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_where_all_is_checked_and_nothing_known_the_answer_is_no(scanned: Scan, osv: str) -> None:
    status, said = scanned(osv)
    assert status == 0
    assert said.endswith("\n0 packages with known faults, 0 packages not checked\n")
    assert "4 components: 1 Debian, 1 Go, 1 Maven, 1 PyPI" in said
    assert Osv.asked == [
        {"package": {"ecosystem": "Debian:13", "name": "glibc"}, "version": "2.41-12"},
        {"package": {"ecosystem": "Go", "name": "stdlib"}, "version": "1.20"},
        {"package": {"ecosystem": "Maven", "name": "a.b:c"}, "version": "1.0"},
    ]
    # Nothing is checked where an answer lacks.
    Osv.answers = False
    status, said = scanned(osv)
    assert status == audit.NOT_ALL_CHECKED
    assert "2 answers to 3 questions" in said


def test_what_is_known_is_told_and_is_a_failure(folder: Path, scanned: Scan, osv: str) -> None:
    Osv.faulty = "stdlib"
    vulnerable = {"id": "PYSEC-1", "aliases": ["CVE-2026-1", "GHSA-x"], "fix_versions": ["0.2"]}
    pypi = {"dependencies": [PYPI["dependencies"][0] | {"vulns": [vulnerable]}]}
    (folder / "pip-audit.txt").write_text(json.dumps(pypi))
    status, said = scanned(osv)
    assert status == audit.FOUND
    assert "\nFOUND        Go stdlib 1.20: GO-1; GO-2\n" in said
    assert "\nFOUND        PyPI starlette 0.1: PYSEC-1 = CVE-2026-1, mended in 0.2\n" in said
    assert said.endswith("\n2 packages with known faults, 0 packages not checked\n")
    assert len(json.loads((folder / "found.json").read_text())) == 2


@pytest.mark.parametrize(
    ("url", "reason"),
    [("http://127.0.0.1:9", "http://127.0.0.1:9 did not answer ("), ("", "AUDIT_OSV is empty")],
)
def test_what_could_not_be_checked_is_no_success(scanned: Scan, url: str, reason: str) -> None:
    status, said = scanned(url)
    assert status == audit.NOT_ALL_CHECKED
    for kind, what in (("Debian", "glibc 2.41-12"), ("Go", "stdlib 1.20"), ("Maven", "a.b:c 1.0")):
        assert f"\nNOT CHECKED  {kind}: 1 packages ({what}): {reason}" in said
    assert "\nchecked      PyPI: 1 packages, of which 0 have known faults\n" in said
    assert said.endswith("\n0 packages with known faults, 3 packages not checked\n")


NOT_IN_THE_LOCKS = {"dependencies": [{"name": "starlette", "version": "0.2", "vulns": []}]}
# As it answers where the index has no JSON API, with "No known vulnerabilities found".
SKIPPED = {"dependencies": [{"name": "starlette", "skip_reason": "not found on PyPI"}]}
STARLETTE = "PyPI: 1 packages (starlette 0.1): "
JAR = {"image": "lab/c:1", "components": [["jar", "x.jar", "0123456789ab"]]}
ABSENT = {"image": "lab/d:1", "components": [["image", "lab/d:1", ""]]}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        *(
            ("pip-audit.txt", text, f"{STARLETTE}pip-audit did not")
            for text in (None, "", "Traceback", "{}", "[]")
        ),
        ("pip-audit.txt", json.dumps(NOT_IN_THE_LOCKS), f"{STARLETTE}not in the locks\n"),
        ("pip-audit.txt", json.dumps(SKIPPED), f"{STARLETTE}pip-audit: not found on PyPI\n"),
        ("image-3.json", json.dumps(JAR), "jar: 1 packages (x.jar 0123456789ab): nobody knows"),
        ("image-3.json", json.dumps(ABSENT), "image: 1 packages (lab/d:1 ): not on this machine"),
    ],
)
def test_what_nobody_looked_at_is_not_checked(
    folder: Path, scanned: Scan, osv: str, name: str, text: str | None, said: str
) -> None:
    (folder / name).unlink(missing_ok=True)
    if text is not None:
        (folder / name).write_text(text)
    status, printed = scanned(osv)
    assert status == audit.NOT_ALL_CHECKED
    assert f"\nNOT CHECKED  {said}" in printed


def test_the_sbom_names_each_package_once_with_the_images_that_hold_it(folder: Path) -> None:
    audit.scan(folder, "", "13", "abc")
    document = json.loads((folder / "sbom.cdx.json").read_text())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert document["metadata"]["component"]["version"] == "abc"
    by_purl = {one["purl"]: one for one in document["components"]}
    assert sorted(by_purl) == [
        "pkg:deb/debian/glibc@2.41-12?arch=source",
        "pkg:golang/stdlib@1.20",
        "pkg:maven/a.b/c@1.0",
        "pkg:pypi/starlette@0.1",
    ]
    images = [one["value"] for one in by_purl["pkg:golang/stdlib@1.20"]["properties"]]
    assert images == ["lab/a:1", "lab/b:1"]


def test_as_a_program_it_reads_an_image_and_refuses_other_words() -> None:
    command = [sys.executable, str(REPO / ".ci/audit.py")]
    image = written_image({"var/lib/dpkg/status": STATUS.encode()}).getvalue()
    words = [*command, "inventory", "lab/a:1", "none"]
    told = subprocess.run(words, input=image, capture_output=True, check=True)
    assert json.loads(told.stdout)["image"] == "lab/a:1"
    assert len(json.loads(told.stdout)["components"]) == 3
    refused = subprocess.run([*command, "x"], capture_output=True, check=False)
    assert refused.returncode == 2
    assert refused.stderr.count(b"\n") == 1
