"""Makes the blocking face from the asynchronous one, which is the only one that is written: the package and its tests.

python scripts/generate_sync.py [--check]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict

from async_to_sync import RewriteError, refuse_leftovers, sync_source
from generated_folder import bring_up_to_date

PYTHON = Path(__file__).resolve().parent.parent
FACES = {
    "src/agentfense/_async": "src/agentfense/_sync",
    "tests/async_face": "tests/sync_face",
}


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--check", action="store_true", help="write nothing; fail when a folder is not up to date")
    check: bool = arguments.parse_args().check
    try:
        outcomes = [
            bring_up_to_date(PYTHON / target, sync_modules(PYTHON, source), check=check)
            for source, target in FACES.items()
        ]
    except RewriteError as error:
        print(error, file=sys.stderr)
        return 1
    return 0 if all(outcomes) else 1


def sync_modules(top: Path, source: str) -> Dict[str, bytes]:
    """Every module of the blocking folder, by its path in there; `source` is the asynchronous folder below `top`."""
    with tempfile.TemporaryDirectory() as scratch:
        for path in sorted((top / source).rglob("*.py")):
            target = Path(scratch, path.relative_to(top / source))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(with_origin(path, path.relative_to(top).as_posix()), "utf-8")
        tidy(Path(scratch))
        return {path.relative_to(scratch).as_posix(): path.read_bytes() for path in Path(scratch).rglob("*.py")}


def with_origin(path: Path, name: str) -> str:
    """The blocking form of a module, with its origin in the first line."""
    try:
        module = sync_source(path.read_text("utf-8"))
        refuse_leftovers(module)
    except RewriteError as error:
        raise RewriteError(f"{name}: {error}") from error
    return f"# Generated from {name} by scripts/generate_sync.py: change it there.\n{module}"


def tidy(folder: Path) -> None:
    """Shorter words fit other lines, other names have another order, and what waited no longer needs its imports."""
    ruff = [str(Path(sys.executable).with_name("ruff"))]
    settings = ["--quiet", "--no-cache", "--config", str(PYTHON / "pyproject.toml"), str(folder)]
    subprocess.run([*ruff, "check", "--fix-only", "--select", "I,F401,RUF022", *settings], check=True)
    subprocess.run([*ruff, "format", *settings], check=True)


if __name__ == "__main__":
    sys.exit(main())
