"""The tools as a model sees them: the same as those of the TypeScript SDK, word by word."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Dict, FrozenSet, Mapping

from agentfense._tools.call import ToolName
from agentfense._tools.input_schema import Property, accepted, flag, integer, text
from agentfense.exceptions import InvalidConfigurationError

SHELL_TIMEOUT_MS = 60_000
READ_LINES = 2000
SEARCH_RESULTS = 100


@dataclass(frozen=True)
class ToolDeclaration:
    """A tool without what it does."""

    description: str
    properties: Mapping[str, Property]
    required: FrozenSet[str]
    #: It only looks.
    read_only: bool

    @property
    def input_schema(self) -> Dict[str, Any]:
        """A JSON Schema, a new one each time: frameworks change what they are given."""
        return {
            "type": "object",
            "properties": deepcopy(dict(self.properties)),
            "required": [name for name in self.properties if name in self.required],
            "additionalProperties": False,
        }

    def accept(self, given: object) -> Dict[str, Any]:
        """What a model sent, if it fits; else a ToolFailure."""
        return accepted(given, self.properties, self.required)


DECLARATIONS: Dict[ToolName, ToolDeclaration] = {
    "shell": ToolDeclaration(
        "Runs a command line in the shell of the sandbox and gives its output and exit code. It starts in /workspace, "
        "where the project is; every call is a shell of its own. There may be no network, and some files cannot be "
        "seen or written.",
        {
            "command": text("The command line"),
            "timeout_ms": integer(f"Ended after this many milliseconds; default {SHELL_TIMEOUT_MS}", 1, 600_000),
            "workdir": text("Where to run it, relative to /workspace; default /workspace"),
        },
        frozenset({"command"}),
        read_only=False,
    ),
    "read_file": ToolDeclaration(
        "Reads a text file of the workspace, as it is, or some of its lines.",
        {
            "path": text("Relative to /workspace"),
            "offset": integer("The first line, counted from 1; default 1", 1, 1_000_000_000),
            "limit": integer(f"How many lines; default {READ_LINES}", 1, 1_000_000),
        },
        frozenset({"path"}),
        read_only=True,
    ),
    "write_file": ToolDeclaration(
        "Writes a file of the workspace: a new one, with the directories on its way, or all of one that is there.",
        {
            "path": text("Relative to /workspace"),
            "content": text("All that the file is to hold", may_be_empty=True),
        },
        frozenset({"path", "content"}),
        read_only=False,
    ),
    "edit_file": ToolDeclaration(
        "Replaces text in a file of the workspace. The old text must be there exactly as given, white space included, "
        "and only once unless all are to be replaced.",
        {
            "path": text("Relative to /workspace"),
            "old_text": text("What to replace, with enough around it to be the only such place"),
            "new_text": text("What to put there", may_be_empty=True),
            "replace_all": flag("Replace every such place; default false"),
        },
        frozenset({"path", "old_text", "new_text"}),
        read_only=False,
    ),
    "list_files": ToolDeclaration(
        "Lists a directory of the workspace. Directories end in a slash.",
        {
            "path": text("Relative to /workspace; default /workspace itself"),
            "recursive": flag("With all that is below; default false"),
        },
        frozenset(),
        read_only=True,
    ),
    "search": ToolDeclaration(
        "Searches the text files of the workspace for a regular expression (POSIX extended) and gives path:line:text "
        "of each match.",
        {
            "pattern": text("What to look for within a line"),
            "path": text("A directory or file, relative to /workspace; default all"),
            "max_results": integer(f"How many matches to give; default {SEARCH_RESULTS}", 1, 10_000),
        },
        frozenset({"pattern"}),
        read_only=True,
    ),
    "changes": ToolDeclaration(
        "Lists what was changed in the workspace so far and has not been handed over.",
        {},
        frozenset(),
        read_only=True,
    ),
}


def declaration_of(tool: ToolName) -> ToolDeclaration:
    """The declaration of a tool; a name that is none of a tool is refused."""
    if tool not in DECLARATIONS:
        raise InvalidConfigurationError(f"there is no tool {tool!r}", hint=f"there are {', '.join(DECLARATIONS)}")
    return DECLARATIONS[tool]
