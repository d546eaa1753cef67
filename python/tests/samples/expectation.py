"""What a sample is to do, as values; `facts` are what really happened must be equal to."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union


class Matching:
    """Equal to every text in which the expression is found."""

    def __init__(self, expression: str) -> None:
        self._expression = re.compile(expression, re.MULTILINE)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self._expression.search(other) is not None

    def __repr__(self) -> str:
        return f"Matching({self._expression.pattern!r})"


Text = Union[str, Matching]


@dataclass(frozen=True)
class Ran:
    """A command and what it gives. `stated` is the document's word for that, which stands behind or below it."""

    command: str
    stdout: Text = ""
    stderr: Text = ""
    exit_code: int = 0
    stated: Optional[str] = None

    def facts(self) -> Dict[str, Any]:
        return {
            "command": self.command,
            "stdout": self.stdout,
            "stderr": self.stderr,
            "exit_code": self.exit_code,
        }


@dataclass(frozen=True)
class Decided:
    """The level of a path, the rule that decided and those that match and lost, by their patterns."""

    permission: str
    deciding: Optional[str]
    losing: Sequence[str] = ()

    def facts(self) -> Dict[str, Any]:
        return {"permission": self.permission, "deciding": self.deciding, "losing": list(self.losing)}


@dataclass(frozen=True)
class Opened:
    """A sandbox that a sample opened, as it is just before its end: what commands give there, and what rules say."""

    probes: Sequence[Ran] = ()
    explained: Mapping[str, Decided] = field(default_factory=dict)
    # Files of the codebase; None is one that is not there.
    codebase: Mapping[str, Optional[str]] = field(default_factory=dict)
    info: Mapping[str, object] = field(default_factory=dict)

    def facts(self) -> Dict[str, Any]:
        return {
            "probes": [ran.facts() for ran in self.probes],
            "explained": {path: decided.facts() for path, decided in self.explained.items()},
            "codebase": dict(self.codebase),
            "info": dict(self.info),
        }


@dataclass(frozen=True)
class Outcome:
    """All that is observed of a sample."""

    runs: Sequence[Ran] = ()
    printed: Text = ""
    opened: Sequence[Opened] = (Opened(),)
    # Sandboxes and codebases that are still there at its end.
    left: Tuple[int, int] = (0, 0)
    # Audit events of the sandboxes it made, in their order; None is not looked at.
    events: Optional[Sequence[str]] = None

    def facts(self) -> Dict[str, Any]:
        facts: Dict[str, Any] = {
            "runs": [ran.facts() for ran in self.runs],
            "printed": self.printed,
            "opened": [opened.facts() for opened in self.opened],
            "left": list(self.left),
        }
        return facts if self.events is None else {**facts, "events": list(self.events)}


def every_run(outcome: Outcome) -> List[Ran]:
    return [*outcome.runs, *(ran for opened in outcome.opened for ran in opened.probes)]
