"""Who may use which part of the lab: a token for each, known to driver and agent alone.

`make` keeps a secret for each lab (LAB_SECRET). The token of a part follows from the secret and the
part's name, and is sent to that part only, so a part that turns hostile learns no other token. The
parts themselves have no secret: they know their tokens by their SHA-256 (LAB_TOKEN_SUMS).
"""

import hashlib
import hmac
from collections.abc import Iterable

from lab.model.routes import RECORDER_PORT

HEADER = "Lab-Token"
# Management ports of the servers and the downstream; Toxiproxy's API, behind its front; the agent;
# the recorder in the JVM of a service of the user's own.
PORTS = frozenset((8081, 8475, 9464, RECORDER_PORT))
# What the front of the published ports adds to requests of the host. No host can have this name.
PAGE = "the control page"
# The recorder has one token, whatever JVM it is in: it does not know that service's name.
RECORDER = "recorder"
# Parts with a token beside the servers and the agent.
PARTS = ("downstream", "toxiproxy", RECORDER)


def token(secret: str, part: str) -> str:
    """The token of a part of the lab, by its name in the lab's network."""
    return hmac.digest(secret.encode(), part.encode(), "sha256").hex()


def token_sums(secret: str, parts: Iterable[str]) -> str:
    """LAB_TOKEN_SUMS: NAME=SUM,…"""
    sums = {part: hashlib.sha256(token(secret, part).encode()).hexdigest() for part in parts}
    return ",".join(f"{part}={value}" for part, value in sums.items())
