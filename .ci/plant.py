"""Waits for a moment of a run, and does what must be done then; runs in the agent's container.

    trial NAME          returns when the window of the trial whose name ends so has begun
    over NAME           returns when the agent announces that trial no longer
    toxic NAME          in that window: adds a toxic, waits until the agent has seen it, removes it
    status SERVER PATH  prints the status of an answer to a client
    ask METHOD SERVER PATH [JSON]  of a server's management port
    found               prints what a run can change of the core's servers and of Toxiproxy

A program that is started at the moment itself would come late on a busy machine; this one is
started before, and looks ten times a second.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from lab.system.http import TokenAuth

PATIENCE_S = 300.0
LOOK_S = 0.1
AGENT = "http://loadgen:9464"
TOXICS = "http://toxiproxy:8475/proxies/downstream/toxics"
SLOW = {"name": "planted", "type": "latency", "attributes": {"latency": 50}}
SEEN = 'lab_toxics_in_force{proxy="downstream"} 1.0'

client = httpx.Client(timeout=10, auth=TokenAuth(os.environ["LAB_SECRET"]))


def until(moment: Callable[[], bool], what: str) -> None:
    """Return when it has come; exits after PATIENCE_S."""
    end = time.monotonic() + PATIENCE_S
    while not moment():
        if time.monotonic() > end:
            sys.exit(f"not within {PATIENCE_S:.0f} s: {what}")
        time.sleep(LOOK_S)


def announced(name: str) -> str | None:
    """The phase of the trial, if it is the one that runs."""
    answer = client.get(f"{AGENT}/trial")
    if answer.status_code == httpx.codes.NOT_FOUND:
        return None
    trial = answer.raise_for_status().json()
    return str(trial["phase"]) if str(trial["trial"]).endswith(name) else None


def trial(name: str) -> None:
    """Wait until its window has begun."""
    until(lambda: announced(name) == "measure", f"the window of {name}")


def over(name: str) -> None:
    """Wait until it is announced no longer."""
    until(lambda: announced(name) is None, f"the end of {name}")


def toxic(name: str) -> None:
    """Add a toxic in its window; remove it once the agent has seen it."""
    trial(name)
    client.post(TOXICS, json=SLOW).raise_for_status()
    try:
        # Not /toxics: the agent would look because it was asked.
        until(lambda: SEEN in client.get(f"{AGENT}/metrics").text, "the agent sees the toxic")
        print("in the window still:", announced(name) == "measure")
    finally:
        client.delete(f"{TOXICS}/planted").raise_for_status()


def ask(method: str, server: str, path: str, body: str = "") -> None:
    """Print what the management port answers."""
    answer = client.request(method, f"http://{server}:8081{path}", content=body)
    print(answer.raise_for_status().text)


def found() -> None:
    """Print the settings of every server of the core, and the proxies with their toxics."""
    (listed,) = json.loads(Path("/lab/servers/core.json").read_text())
    for server in listed["targets"]:
        print(server, client.get(f"http://{server}:8081/settings").raise_for_status().text)
    print(client.get("http://toxiproxy:8475/proxies").raise_for_status().text)


def status(server: str, path: str) -> None:
    """Print the status with which the traffic port answers; 0 where it does not."""
    try:
        print(client.get(f"http://{server}:8080{path}").status_code)
    except httpx.HTTPError as failure:
        print(f"{server}: {failure!r}", file=sys.stderr)
        print(0)


DO = {
    "trial": trial,
    "over": over,
    "toxic": toxic,
    "ask": ask,
    "found": found,
    "status": status,
}
DO[sys.argv[1]](*sys.argv[2:])
