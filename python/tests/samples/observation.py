"""Watches what a sample does with the SDK, and changes nothing of it."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set

from agentfense import ExecResult, Sandbox, SandboxClient, Session
from agentfense.exceptions import FileNotFoundError
from tests.samples.expectation import Opened

# Everything that runs a command and gives its result; some of them through others.
_RUNNING = [
    (Sandbox, "run"),
    (Sandbox, "exec"),
    (Session, "exec"),
    (SandboxClient, "exec"),
    (SandboxClient, "session_exec"),
]


class Observation:
    """What happens between two `begin`s: runs, sandboxes made, and sandboxes as they were just before their end."""

    def __init__(self) -> None:
        self.begin([])
        for owner, name in _RUNNING:
            _wrap(owner, name, self._running)
        _wrap(SandboxClient, "create_sandbox", self._creating)
        for name in ("destroy", "__exit__"):
            _wrap(Sandbox, name, self._ending)

    def begin(self, opened: Sequence[Opened]) -> None:
        """What to look at in the sandboxes, in the order of their ends."""
        self.runs: List[Dict[str, Any]] = []
        self.made: List[str] = []
        self.opened: List[Dict[str, Any]] = []
        self._wanted = list(opened)
        self._seen: Set[str] = set()
        self._depth = 0

    def look(self, sandbox: Sandbox) -> None:
        """Looks at a sandbox for the last time."""
        if sandbox.id in self._seen:
            return
        self._seen.add(sandbox.id)
        wanted = self._wanted.pop(0) if self._wanted else Opened()
        with self._unseen():
            self.opened.append(_facts(sandbox, wanted))

    def _running(self, method: Callable[..., ExecResult], *args: Any, **options: Any) -> ExecResult:
        outermost = self._depth == 0
        with self._unseen():
            result = method(*args, **options)
        if outermost:
            self.runs.append(_run(result))
        return result

    def _creating(self, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
        made = method(*args, **options)
        self.made.append(made.id)
        return made

    def _ending(self, method: Callable[..., Any], sandbox: Sandbox, *args: Any, **options: Any) -> Any:
        self.look(sandbox)
        return method(sandbox, *args, **options)

    @contextmanager
    def _unseen(self) -> Iterator[None]:
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1


def _wrap(owner: type, name: str, around: Callable[..., Any]) -> None:
    method = getattr(owner, name)

    @functools.wraps(method)
    def wrapper(*args: Any, **options: Any) -> Any:
        return around(method, *args, **options)

    setattr(owner, name, wrapper)


def _facts(sandbox: Sandbox, wanted: Opened) -> Dict[str, Any]:
    info = sandbox.info
    return {
        "probes": [_run(sandbox.run(ran.command)) for ran in wanted.probes],
        "explained": {path: _decided(sandbox, path) for path in wanted.explained},
        "codebase": {path: _codebase_file(sandbox, path) for path in wanted.codebase},
        "info": {name: _plain(info, name) for name in wanted.info},
    }


def _run(result: ExecResult) -> Dict[str, Any]:
    return {
        "command": result.command,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "exit_code": result.exit_code,
    }


def _decided(sandbox: Sandbox, path: str) -> Dict[str, Any]:
    explanation = sandbox.explain(path)
    deciding = explanation.deciding
    return {
        "permission": str(explanation.permission),
        "deciding": None if deciding is None else deciding.rule.pattern,
        "losing": [candidate.rule.pattern for candidate in explanation.losing],
    }


def _codebase_file(sandbox: Sandbox, path: str) -> Optional[str]:
    try:
        return sandbox.client.download_file(sandbox.codebase_id, path).decode()
    except FileNotFoundError:
        return None


def _plain(info: Any, name: str) -> Any:
    """`resources.memory_bytes` of a record, as JSON has it."""
    value = functools.reduce(getattr, name.split("."), info)
    return str(value) if isinstance(value, str) else value
