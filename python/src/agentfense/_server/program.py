"""The `agentfense` program, which is written in TypeScript and installed with npm."""

from __future__ import annotations

import shlex
import shutil
from typing import List, Mapping

from agentfense.exceptions import ConnectionError, InvalidConfigurationError

INSTALL_HINT = "npm install -g agentfense, or name a server: endpoint=…, AGENTFENSE_ENDPOINT"

#: Runs what is installed, near the current directory or for everybody. It neither asks nor downloads.
_NPX_OPTIONS = ("--no", "--offline", "--")


def find_program(environment: Mapping[str, str]) -> List[str]:
    """The words that start it: what AGENTFENSE_COMMAND says, else the program on PATH, else npx if that is there."""
    given = environment.get("AGENTFENSE_COMMAND", "").strip()
    if given:
        return _words(given)
    path = environment.get("PATH")
    program = shutil.which("agentfense", path=path)
    if program is not None:
        return [program]
    npx = shutil.which("npx", path=path)
    if npx is not None:
        return [npx, *_NPX_OPTIONS, "agentfense"]
    raise ConnectionError(
        "no server is named, and there is no agentfense program to start one with",
        code="CONNECTION_FAILED",
        hint=INSTALL_HINT,
    )


def _words(command: str) -> List[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise InvalidConfigurationError(f"AGENTFENSE_COMMAND is no command: {error}") from error
