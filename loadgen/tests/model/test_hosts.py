"""What is wrong with a hosts.toml, or with the machines it names, is said in one line."""

import json
import re

import pytest

from lab.errors import WordError
from lab.model.hosts import (
    FILE,
    ROLES,
    Node,
    check_engines,
    further_generators,
    node_of,
    read_hosts,
)
from support.repo import REPO

GOOD = """
[nodes.load]
address = "ssh://lab@192.0.2.11"
roles = ["generator"]
[nodes.tested]
address = "tcp://192.0.2.12:2376"
roles = ["server"]
[nodes.called]
address = "unix:///var/run/docker.sock"
roles = ["downstream", "monitor"]
"""


def test_nodes_are_read() -> None:
    nodes = read_hosts(GOOD).nodes
    assert nodes[0] == Node("load", "ssh://lab@192.0.2.11", ("generator",))
    assert node_of(nodes, "monitor").name == "called"


def test_what_passes_between_them_is_encrypted_where_the_file_says_so() -> None:
    assert not read_hosts(GOOD).encrypted
    assert read_hosts(f"encrypted = true\n{GOOD}").encrypted


def test_several_nodes_may_be_generators_and_the_first_is_the_driver_s() -> None:
    nodes = read_hosts(GOOD.replace('["downstream"', '["generator", "downstream"')).nodes
    assert node_of(nodes, "generator").name == "load"
    assert [node.name for node in further_generators(nodes)] == ["called"]
    assert further_generators(read_hosts(GOOD).nodes) == ()


def test_the_example_is_right_and_explains_every_role() -> None:
    text = (REPO / "hosts.example.toml").read_text()
    assert {role for node in read_hosts(text).nodes for role in node.roles} == set(ROLES)
    for role, what in ROLES.items():
        assert re.search(rf"^#.* {role} +{re.escape(what)}$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        ('["generator"]', '["generator', "line 4"),
        ('["generator"]', "[" * 3_000, "hosts.toml: "),
        (GOOD, "", "it has no node"),
        (GOOD, "nodes = 3", "it has no node"),
        ("[nodes.load]", "[hosts.load]", "hosts is not allowed"),
        ("[nodes.load]", 'encrypted = "yes"\n[nodes.load]', "encrypted='yes' is not allowed"),
        ("[nodes.load]", "[nodes.Load]", "node Load: the name is not allowed"),
        ("[nodes.load]", f"[nodes.{'a' * 32}]", "the name is not allowed"),
        ("[nodes.load]", "nodes.other = 3\n[nodes.load]", "node other: 3 is not allowed"),
        ("roles", "port = 3\nroles", "node load: port is not allowed"),
        ("ssh://lab@192.0.2.11", "192.0.2.11", "node load: address='192.0.2.11' is not allowed"),
        ("ssh://lab@192.0.2.11", "ssh://a b", "address='ssh://a b' is not allowed"),
        ("ssh://lab@192.0.2.11", "ssh://-oProxyCommand=x", "is not allowed"),
        ("ssh://lab@192.0.2.11", "unix:///var/run/docker.sock", "load and called have one address"),
        ('address = "ssh://lab@192.0.2.11"', "", "node load: address=None is not allowed"),
        ('["generator"]', '"generator"', "node load: roles='generator' is not allowed"),
        ('["generator"]', "[]", r"node load: roles=\[\] is not allowed"),
        ('["generator"]', '["client"]', "node load: role 'client' is not allowed"),
        ('["generator"]', '["generator", "generator"]', "role 'generator' is not allowed"),
        ('["generator"]', '["generator", "server"]', "load and tested have the role server"),
        ('["downstream", "monitor"]', '["downstream"]', "no node has the role monitor"),
        ('["server"]', '["monitor"]', "no node has the role server"),
    ],
)
def test_wrong_input_gets_one_line(was: str, becomes: str, says: str) -> None:
    assert was in GOOD
    with pytest.raises(WordError, match=says) as refused:
        read_hosts(GOOD.replace(was, becomes, 1))
    assert str(refused.value).startswith(f"{FILE}: ")
    assert "\n" not in str(refused.value)


NODES = read_hosts(GOOD).nodes
MEMBERS = "id-load Ready Active\nid-tested Ready Active\nid-called Ready Active\n"


def info(name: str, **changes: object) -> str:
    told = {
        "ServerVersion": "26.1.5+dfsg1",
        "OSType": "linux",
        "Architecture": "x86_64",
        "Swarm": {"NodeID": f"id-{name}", "LocalNodeState": "active"},
    }
    return json.dumps({**told, **changes})


def test_engines_that_can_be_used_are_known_to_the_swarm() -> None:
    told = {node.name: info(node.name) for node in NODES}
    found = check_engines(NODES, told, "x86_64", MEMBERS)
    assert found == {"load": "id-load", "tested": "id-tested", "called": "id-called"}


@pytest.mark.parametrize(
    ("told", "members", "says"),
    [
        (
            "Cannot connect to the\nDocker daemon",
            MEMBERS,
            "node tested is not reachable at tcp://192",
        ),
        ("", MEMBERS, "is not reachable"),
        (json.dumps({"ServerErrors": ["no route"]}), MEMBERS, "is not reachable at .*: no route"),
        (info("tested", ServerVersion="20.10.24"), MEMBERS, "is Docker 20.10.24; allowed: 25.0"),
        (info("tested", ServerVersion="dev"), MEMBERS, "is Docker dev"),
        (
            info("tested", Architecture="aarch64"),
            MEMBERS,
            "it is linux/aarch64; allowed: linux/x86",
        ),
        (info("tested", OSType="windows"), MEMBERS, "it is windows/x86_64"),
        (info("tested", Swarm={"LocalNodeState": "inactive"}), MEMBERS, "it is in no Swarm"),
        (info("tested", Swarm=None), MEMBERS, "it is in no Swarm"),
        (info("tested"), "", "none of the nodes is a manager"),
        (info("tested"), MEMBERS.replace("id-tested", "x"), "tested: it is in another Swarm"),
        (info("tested"), MEMBERS.replace("tested Ready", "tested Down"), "says it is Down Active"),
        (info("load"), MEMBERS, "load and tested are one machine"),
    ],
)
def test_an_engine_that_cannot_be_used_gets_one_line(told: str, members: str, says: str) -> None:
    said = {node.name: info(node.name) for node in NODES} | {"tested": told}
    with pytest.raises(WordError, match=says) as refused:
        check_engines(NODES, said, "x86_64", members)
    assert "\n" not in str(refused.value)
