"""Every container of the running lab, a driver's too, against the checklist of containers.

`.ci/smoke.sh` has asked the engine while a bench ran.
"""

import json

import pytest

from support.containers import ALLOWED, Container, findings, service_of
from support.stored import results


@pytest.fixture(scope="module")
def containers() -> list[Container]:
    return json.loads((results().parent / "containers.json").read_text())


def test_every_container_keeps_the_checklist(containers: list[Container]) -> None:
    services = {service_of(container) for container in containers}
    assert services >= {"cadvisor", "driver", "fixed-pool", "loadgen", "prometheus", "toxiproxy"}
    found = {finding for container in containers for finding in findings(container)}
    # What is allowed and not there is allowed no longer.
    assert found == {finding for finding in ALLOWED if finding.service in services}


def test_only_prometheus_is_beside_the_engines_socket(containers: list[Container]) -> None:
    beside = {
        service_of(container)
        for container in containers
        for network in container["NetworkSettings"]["Networks"]
        if network.endswith("_cadvisor")
    }
    assert beside == {"cadvisor", "prometheus"}


def test_only_load_engine_and_downstream_have_weight(containers: list[Container]) -> None:
    shares = {service_of(one): one["HostConfig"]["CpuShares"] for one in containers}
    assert {name: count for name, count in shares.items() if count} == {
        "driver": 8192,
        "downstream": 8192,
    }


def test_what_a_page_could_stop_or_read_is_off(containers: list[Container]) -> None:
    (arguments,) = (one["Args"] for one in containers if service_of(one) == "prometheus")
    assert "--web.cors.origin=none" in arguments
    assert not [one for one in arguments if "enable-lifecycle" in one or "admin-api" in one]
