"""The lab against oracles that know the answer.

They compute for half a minute or wait for seconds of load, so `pytest` alone leaves them out:
`LAB_TRUTH=yes pytest tests/truth` (a part of SUITE=full).
"""

import os

if "LAB_TRUTH" not in os.environ:
    collect_ignore_glob = ["test_*.py"]
