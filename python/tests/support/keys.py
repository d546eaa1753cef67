"""The first API key of a server. It cannot come from the API: nobody could ask for it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Dict

from tests.server import CLI, REPOSITORY


def storage_in(directory: Path) -> Dict[str, object]:
    """Settings of a server that keeps everything where a test knows it."""
    return {
        "codebase_path": str(directory / "codebases"),
        "mount_path": str(directory / "mounts"),
        "db_path": str(directory / "metadata.db"),
    }


def administrator_key(directory: Path) -> str:
    """Makes a key on a server with that storage, as its operator does, and gives the secret."""
    configuration = directory / "key-create.yaml"
    configuration.write_text(json.dumps({"storage": storage_in(directory)}), encoding="utf-8")
    node = str(REPOSITORY / "node_modules" / ".bin" / "node")
    command = [
        node,
        str(CLI),
        "key",
        "create",
        "--config",
        str(configuration),
        "--owner",
        "operator",
        "--role",
        "admin",
    ]
    made = subprocess.run([*command, "--json"], check=True, capture_output=True, text=True)
    secret: str = json.loads(made.stdout)["secret"]
    return secret
