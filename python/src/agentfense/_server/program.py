"""The `agentfense` program, which is written in TypeScript and installed with npm."""

from __future__ import annotations

import re
import shlex
import shutil
from typing import List, Mapping

from agentfense.exceptions import ConnectionError, InvalidConfigurationError

#: No registry has the program yet, so that no single line installs it.
INSTALL_HINT = (
    "install the npm package agentfense, as its README says, or name a server: endpoint=…, AGENTFENSE_ENDPOINT"
)

#: Runs what is installed, near the current directory or for everybody. It neither asks nor downloads.
_NPX_OPTIONS = ("--no", "--offline", "--")
#: What npm says of itself, before and since its tenth version, when it has nothing to run.
_NPX_ERROR = re.compile(
    r"^npm (?:error|ERR!) (?:code (?:ENOTCACHED|E404)|.*(?:missing packages|canceled))", re.MULTILINE
)


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
    raise no_program()


def has_found_nothing(command: List[str], printed: str) -> bool:
    """Whether npx speaks here, about a package that is nowhere, and no program that it started."""
    return command[1 : 1 + len(_NPX_OPTIONS)] == list(_NPX_OPTIONS) and _NPX_ERROR.search(printed) is not None


def no_program() -> ConnectionError:
    return ConnectionError(
        "no server is named, and there is no agentfense program to start one with: none on PATH, and none in the "
        "node_modules of the working directory",
        code="CONNECTION_FAILED",
        hint=INSTALL_HINT,
    )


def _words(command: str) -> List[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise InvalidConfigurationError(f"AGENTFENSE_COMMAND is no command: {error}") from error
