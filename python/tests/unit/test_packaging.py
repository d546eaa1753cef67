"""What is published: the two archives, and the package as somebody has it who installed it."""

from __future__ import annotations

import email
import email.message
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path
from typing import NamedTuple, Set

import pytest

from agentfense import __version__

PYTHON = Path(__file__).resolve().parents[2]
SOURCE = PYTHON / "src"


class Archives(NamedTuple):
    sdist: Path
    wheel: Path


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Archives:
    """Built as a release is: the source archive from the tree, the wheel from the source archive; both offline."""
    place = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(place), str(PYTHON))
    (sdist,) = place.glob("*.tar.gz")
    (wheel,) = place.glob("*.whl")
    return Archives(sdist, wheel)


def test_the_wheel_has_the_package_and_nothing_else(archives: Archives) -> None:
    with zipfile.ZipFile(archives.wheel) as wheel:
        names = set(wheel.namelist())
    metadata = f"agentfense-{__version__}.dist-info"
    assert {name for name in names if not name.startswith("agentfense/")} == {
        f"{metadata}/METADATA",
        f"{metadata}/RECORD",
        f"{metadata}/WHEEL",
        f"{metadata}/licenses/LICENSE",
    }
    assert {name for name in names if name.startswith("agentfense/")} == package_files()
    assert {Path(name).suffix for name in package_files()} == {".py", ".pyi", ".json", ".typed"}


def test_the_source_archive_has_files_and_no_links(archives: Archives) -> None:
    with tarfile.open(archives.sdist) as sdist:
        members = sdist.getmembers()
    assert [member.name for member in members if not member.isfile()] == []
    top = f"agentfense-{__version__}"
    beside = {".gitignore", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
    assert {member.name for member in members} - {f"{top}/{name}" for name in beside} == {
        f"{top}/src/{name}" for name in package_files()
    }


def test_the_metadata_names_the_licence_the_python_and_the_extras(archives: Archives) -> None:
    metadata = metadata_of(archives.wheel)
    assert metadata["Version"] == __version__
    assert metadata["License-Expression"] == "MIT"
    assert metadata["License-File"] == "LICENSE"
    assert metadata["Requires-Python"] == ">=3.9"
    assert set(metadata.get_all("Provides-Extra", [])) == {"langchain", "openai-agents", "smolagents"}


def test_the_licence_is_that_of_the_repository() -> None:
    assert (PYTHON / "LICENSE").read_bytes() == (PYTHON.parent / "LICENSE").read_bytes()


def test_an_installed_wheel_is_imported_from_there_with_its_presets(archives: Archives, tmp_path: Path) -> None:
    venv.create(tmp_path / "environment", with_pip=False, symlinks=True)
    python = tmp_path / "environment/bin/python"
    install = ["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", str(archives.wheel)]
    run(sys.executable, "-m", "pip", "--python", str(python), *install)
    program = (
        "import agentfense; print(agentfense.__file__); print(*(p.name for p in agentfense.presets.list_presets()))"
    )
    # What the package needs is taken from this environment, which has no agentfense of its own.
    place, presets = run(str(python), "-c", program, PYTHONPATH=sysconfig.get_path("purelib")).splitlines()
    assert Path(place).is_relative_to(tmp_path / "environment")
    assert "agent-safe" in presets.split()


def package_files() -> Set[str]:
    """The files of the tree, as git would list them: without what Python compiled."""
    files = (path for path in (SOURCE / "agentfense").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(SOURCE).as_posix() for path in files}


def metadata_of(archive: Path) -> email.message.Message:
    with zipfile.ZipFile(archive) as wheel:
        return email.message_from_bytes(wheel.read(f"agentfense-{__version__}.dist-info/METADATA"))


def run(*command: str, **env: str) -> str:
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run(command, env={**surroundings, **env}, capture_output=True, text=True, cwd="/", check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout
