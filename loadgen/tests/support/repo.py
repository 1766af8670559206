"""Where the checkout is that the tests are of."""

import os
from pathlib import Path

REPO = Path(os.environ.get("LAB_REPO") or Path(__file__).resolve().parents[3])
