"""Makes src/agentfense/_wire from proto/: the messages of the contract and their types, as modules of this package.

python scripts/generate_wire.py [--check]

The compiler writes absolute imports (`from sandbox.v1 import …`), as if the contract were a package of its own; here
they get the name under which it lives, so that nothing called `sandbox` appears among the user's packages.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict

from generated_folder import bring_up_to_date

PYTHON = Path(__file__).resolve().parent.parent
PROTO = PYTHON.parent / "proto"
WIRE = PYTHON / "src/agentfense/_wire"
WIRE_PACKAGE = "agentfense._wire"

# The names in `from sandbox.v1 import common_pb2` and in `BuildTopDescriptorsAndMessages(…, 'sandbox.v1.…', …)`, from
# which messages know the module to be unpickled from. The names of messages (`.sandbox.v1.Sandbox`) stay as they are.
MODULE_NAMES = re.compile(r"^from (?=sandbox\.v1 import )|(?<=')(?=sandbox\.v1\.\w+_pb2')", re.MULTILINE)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--check", action="store_true", help="write nothing; fail when the folder is not up to date")
    return 0 if bring_up_to_date(WIRE, wire_modules(), check=arguments.parse_args().check) else 1


def wire_modules() -> Dict[str, bytes]:
    """Every file of the folder, by its path in there."""
    with tempfile.TemporaryDirectory() as scratch:
        compile_contract(Path(scratch))
        modules = {
            path.relative_to(scratch).as_posix(): with_package_names(path.read_text("utf-8")).encode()
            for path in Path(scratch).rglob("*.py*")
        }
    folders = {parent.as_posix() for name in modules for parent in Path(name).parents}
    return {**modules, **{f"{folder}/__init__.py".replace("./", ""): b"" for folder in folders}}


def compile_contract(target: Path) -> None:
    """Runs the compiler and the plugin for types that are installed beside this Python."""
    plugin = Path(sys.executable).with_name("protoc-gen-mypy")
    sources = sorted(path.relative_to(PROTO).as_posix() for path in PROTO.glob("sandbox/v1/*.proto"))
    options = [f"--plugin=protoc-gen-mypy={plugin}", f"--python_out={target}", f"--mypy_out=quiet:{target}"]
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO}", *options, *sources], check=True)


def with_package_names(module: str) -> str:
    """The module with its own and its neighbours' names below the package."""
    return MODULE_NAMES.sub(lambda found: f"{found.group()}{WIRE_PACKAGE}.", module)


if __name__ == "__main__":
    sys.exit(main())
