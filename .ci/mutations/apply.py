"""apply.py CHECKOUT NUMBER: makes that mutation in the checkout; says its file, name and tests.

Exits with 2 where there is no such number, and with 1 where its text is not there exactly once:
the code has changed, and mutations.toml must follow.
"""

import sys
import tomllib
from pathlib import Path

checkout, number = Path(sys.argv[1]), int(sys.argv[2])
mutations = tomllib.loads(Path(__file__).with_name("mutations.toml").read_text())["mutation"]
if number > len(mutations):
    sys.exit(2)
one = mutations[number - 1]
root = checkout / one["in"]
files = [root] if root.is_file() else sorted(path for path in root.rglob("*") if path.is_file())
found = [path for path in files if one["find"].encode() in path.read_bytes()]
places = sum(path.read_bytes().count(one["find"].encode()) for path in found)
print(found[0].relative_to(checkout) if found else "-")
print(one["name"])
print(*one["tests"])
if places != 1:
    print(f"its text is in {one['in']} {places} times")
    sys.exit(1)
found[0].write_bytes(found[0].read_bytes().replace(one["find"].encode(), one["put"].encode()))
