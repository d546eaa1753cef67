"""What a scripted model does, and what it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence


@dataclass(frozen=True)
class Call:
    """A call of a tool."""

    tool: str
    input: Mapping[str, Any]
    #: What the model is told then, where that is fixed.
    told: str = ""


class Script:
    """What a scripted model does next, and what it was told so far."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls
        self._next = 0
        self._told: Dict[str, str] = {}

    def next(self) -> Optional[Call]:
        """The next call, or None when the work is done."""
        if self._next == len(self._calls):
            return None
        self._next += 1
        return self._calls[self._next - 1]

    @property
    def id(self) -> str:
        """Of the call that was given last."""
        return f"call-{self._next}"

    def hear(self, id: str, output: str) -> None:
        """The model is told what came of a call; it may be told again."""
        self._told[id] = output

    @property
    def outputs(self) -> List[str]:
        """Of its calls, in their order."""
        return list(self._told.values())


#: A session of work, and what the model is told at each step.
WORK = (
    Call("list_files", {"recursive": True}, "README.md\nsrc/\nsrc/greet.sh"),
    Call("read_file", {"path": "src/greet.sh"}, 'name="world"\necho "hello $name"\n'),
    Call(
        "read_file",
        {"path": "src/greet.sh", "offset": None, "limit": 1},
        'name="world"\n[more lines: read on with offset 2]',
    ),
    Call("read_file", {"path": ".env"}, '".env": it does not exist'),
    Call("search", {"pattern": "w[o]rld|s3cret"}, 'src/greet.sh:1:name="world"'),
    Call(
        "edit_file",
        {"path": "src/greet.sh", "old_text": "moon", "new_text": "sun"},
        "the old text is not in src/greet.sh: it must be there exactly as given",
    ),
    Call("edit_file", {"path": "src/greet.sh", "old_text": "world", "new_text": "sandbox"}, "edited src/greet.sh"),
    Call("shell", {"command": "sh src/greet.sh"}, "hello sandbox"),
    Call("shell", {"command": "cat .env"}, "[stderr]\ncat: .env: No such file or directory\n[exit code 1]"),
    Call("write_file", {"path": "src/deep/new.txt", "content": "new\n"}, "wrote src/deep/new.txt"),
    Call("write_file", {"path": "README.md", "content": ""}, '"README.md": permission denied'),
    Call("changes", {}, "added src/deep\nmodified src/greet.sh\nadded src/deep/new.txt"),
)

#: Input that does not fit; nothing is done.
MISFITS = (
    Call(
        "write_file",
        {"path": "src/new"},
        "the input does not fit: content: Invalid input: expected string, received undefined",
    ),
    Call(
        "write_file",
        {"path": "src/new", "content": "x", "self": 1, "func": 2},
        'the input does not fit: Unrecognized keys: "self", "func"',
    ),
    Call("changes", {}, "(nothing)"),
)

#: With an `approve` that refuses everything but `echo yes`.
APPROVED = (
    Call("read_file", {"path": "README.md"}, "# Greeter\n"),
    Call("shell", {"command": "echo yes"}, "yes"),
    Call("write_file", {"path": "src/new", "content": "x"}, "this call was not approved, and nothing was done"),
    Call("changes", {}, "(nothing)"),
)

#: What the prompt of the examples asks for.
GREET_THE_MOON = (
    Call("read_file", {"path": "src/greet.sh"}),
    Call("edit_file", {"path": "src/greet.sh", "old_text": "world", "new_text": "moon"}),
)


def told(calls: Sequence[Call]) -> List[str]:
    """What the model is told, step by step."""
    return [call.told for call in calls]
