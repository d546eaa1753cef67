"""A virtual environment that works at /workspace/venv, made elsewhere and without a network."""

from __future__ import annotations

import shutil
import subprocess
from importlib.metadata import Distribution, EntryPoint, distribution
from pathlib import Path
from typing import Dict, List

from packaging.requirements import Requirement

PLACE = "/workspace/venv"

# What a sandbox has of this machine is below /usr; whoever runs these tests may have another Python first on the PATH.
_SANDBOX_PATH = "/usr/bin:/usr/local/bin"


def write_virtual_environment(directory: Path) -> None:
    """Makes one with pip and pytest: those of this very environment, both of which are plain Python."""
    python = shutil.which("python3", path=_SANDBOX_PATH)
    if python is None:
        raise RuntimeError("there is no python3 below /usr")
    subprocess.run([python, "-m", "venv", "--without-pip", str(directory)], check=True)
    activate = directory / "bin" / "activate"
    activate.write_text(activate.read_text("utf-8").replace(str(directory.absolute()), PLACE), "utf-8")
    (packages,) = directory.glob("lib/python3.*/site-packages")
    for installed in _closure(["pip", "pytest"]).values():
        _copy_packages(installed, packages)
        for command in installed.entry_points:
            if command.group == "console_scripts":
                _write_script(directory / "bin", command)


def _closure(names: List[str]) -> Dict[str, Distribution]:
    """The distributions of these names and all that they need here."""
    found: Dict[str, Distribution] = {}
    while names:
        name = names.pop()
        if name not in found:
            found[name] = distribution(name)
            wanted = map(Requirement, found[name].requires or [])
            names += [each.name for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
    return found


def _copy_packages(installed: Distribution, target: Path) -> None:
    for file in installed.files or []:
        # Scripts are beside the packages, and know another place; what is compiled is for another time of the source.
        if ".." in file.parts or file.suffix in (".pyc", ".exe"):
            continue
        copy = target / file
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file.locate(), copy)


def _write_script(directory: Path, command: EntryPoint) -> None:
    module, _, function = command.value.partition(":")
    script = directory / command.name
    script.write_text(
        f"#!{PLACE}/bin/python\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n", "utf-8"
    )
    script.chmod(0o755)
