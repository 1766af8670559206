"""A token for each part of the lab, known to the driver and the agent alone.

`make` keeps a secret for each lab (LAB_SECRET). The token of a part is derived from the secret and
the part's name, and sent to that part only, so a hostile part learns no other token. The parts know
only the SHA-256 of their tokens (LAB_TOKEN_SUMS).
"""

import hashlib
import hmac
from collections.abc import Iterable

from lab.model.routes import RECORDER_PORT

HEADER = "Lab-Token"
# Management ports of the servers and the downstream; Toxiproxy's API, behind its front; the agent;
# the recorder in a user's JVM.
PORTS = frozenset((8081, 8475, 9464, RECORDER_PORT))
# The front of the published ports adds its token to requests of the host. No host has this name.
PAGE = "the control page"
# One token for every recorder: it does not know the service's name.
RECORDER = "recorder"
# Further parts with a token, next to the servers and the agent.
PARTS = ("downstream", "toxiproxy", RECORDER)


def token(secret: str, part: str) -> str:
    """The token of a part of the lab, by its name in the lab's network."""
    return hmac.digest(secret.encode(), part.encode(), "sha256").hex()


def token_sums(secret: str, parts: Iterable[str]) -> str:
    """LAB_TOKEN_SUMS: NAME=SUM,…"""
    sums = {part: hashlib.sha256(token(secret, part).encode()).hexdigest() for part in parts}
    return ",".join(f"{part}={value}" for part, value in sums.items())
