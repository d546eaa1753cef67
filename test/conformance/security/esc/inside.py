"""Tries to leave the sandbox, from inside of it.

`python3 inside.py ESC-19 '{"outside": "/some/path"}'` carries out one row of the escape table with what the test knows
about the host, and prints one line of JSON: what happened. Whether that is right is for the test to say.
"""

import importlib
import json
import sys

# Each module has a table of its rows; only the one that is asked for is loaded.
MODULES = {
    "leaving": "ESC-01 ESC-02 ESC-03 ESC-04 ESC-05 ESC-06 ESC-07 ESC-14",
    "files": "ESC-09 ESC-10 ESC-11 ESC-12 ESC-13 ESC-46 ESC-55 ESC-56 ESC-16-nodes",
    "processes": "ESC-15 ESC-16 ESC-17 ESC-24 ESC-27 ESC-28 ESC-29 ESC-50 more-than-others speak-for-the-wrapper",
    "secrets": "ESC-25 ESC-26 ESC-47 ESC-49",
    "kernel": "ESC-18 ESC-18-calls ESC-18-numbers ESC-19 ESC-20 ESC-21 ESC-22 ESC-23 ESC-33 ESC-34 ESC-35 ESC-36 ESC-37 ESC-38",
    "system": "ESC-30 ESC-31 ESC-32 ESC-45",
    "devices": "ESC-39 ESC-40",
    "network": "ESC-41 ESC-42 ESC-43 ESC-44",
    "isolation": "ESC-48 ESC-48-make ESC-53 ESC-54",
}


def attack_of(row):
    name = next(name for name, rows in MODULES.items() if row in rows.split())
    return importlib.import_module(f"probes.{name}").ATTACKS[row]


if __name__ == "__main__":
    knowledge = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    print(json.dumps(attack_of(sys.argv[1])(**knowledge)), flush=True)
