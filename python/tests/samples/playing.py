"""Runs a block as its row says, and tells what happened."""

from __future__ import annotations

import ast
import io
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping

import agentfense
from agentfense import Sandbox, SandboxClient
from agentfense.types import RuleLike
from tests.samples.documents import Block, split_transcript
from tests.samples.observation import Observation
from tests.samples.projects import write_project
from tests.samples.sample import InSandbox, PseudoCode, Rules, Script, Terminal

Facts = Dict[str, Any]


class Skip(Exception):
    """The block cannot run here; says why."""


class Play:
    """One block after the other, each in a directory of its own and with nothing left of those before."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._client = SandboxClient()
        self._observation = Observation()

    def facts(self, block: Block, sample: Any) -> Facts:
        """What is observed of the block; the same keys as `Outcome.facts`."""
        if isinstance(sample, PseudoCode):
            return {"refusal": _refusal(block)}
        self._observation.begin([])
        if isinstance(sample, Script) and sample.needs_program is not None:
            _require_program(sample.needs_program, self._client)
        outcome = sample.outcome
        directory = self._base / f"{block.document}-{block.ordinal}"
        directory.mkdir()
        os.chdir(directory)
        self._observation.begin(outcome.opened)
        try:
            printed = _PLAYERS[type(sample)](self._client, block, sample)
            left = [len(self._client.list_sandboxes()), len(self._client.list_codebases())]
            facts = {"printed": printed, "left": left}
            if outcome.events is not None:
                facts["events"] = self._events()
        finally:
            self._clear()
        return {"runs": self._observation.runs, "opened": self._observation.opened, **facts}

    def _events(self) -> List[str]:
        return [event.type for made in self._observation.made for event in self._client.list_events(sandbox_id=made)]

    def _clear(self) -> None:
        """Looks at the sandboxes that are left and removes them, and the codebases."""
        for info in self._client.list_sandboxes():
            with Sandbox.connect(info.id, client=self._client) as sandbox:
                sandbox.destroy(delete_codebase=False)
        for codebase in self._client.list_codebases():
            self._client.delete_codebase(codebase.id)


def _play_script(client: SandboxClient, block: Block, script: Script) -> str:
    write_project(Path(script.folder), script.folder, script.files)
    text = block.text
    if script.codebase_placeholder is not None:
        text = _with_codebase(client, text, script)
    if script.alias is not None:
        sys.modules[script.alias] = agentfense
    names: Dict[str, Any] = {}
    exec(script.prelude, names)
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(text, f"{block.document}.md", "exec"), names)
    return printed.getvalue()


def _with_codebase(client: SandboxClient, text: str, script: Script) -> str:
    placeholder = f'codebase_id="{script.codebase_placeholder}"'
    if text.count(placeholder) != 1:
        raise ValueError(f"the block does not have {placeholder} once")
    codebase = client.create_codebase("sample", "team_123")
    client.upload_directory(codebase.id, script.folder)
    return text.replace(placeholder, f'codebase_id="{codebase.id}"')


def _require_program(name: str, client: SandboxClient) -> None:
    with Sandbox.create(client=client) as sandbox:
        found = sandbox.run(f"command -v {name}")
    if not found.success:
        raise Skip(f"{name} is not below /usr of this machine, so the sandbox does not have it")


def _play_rules(client: SandboxClient, block: Block, rules: Rules) -> str:
    write_project(Path("project"), "./project", {})
    values = statement_values(block.text)
    for chosen in rules.sets:
        permissions = [*chosen.beside, *values[chosen.statement]]
        with Sandbox.from_local("./project", permissions=permissions, client=client, include_git=True):
            pass
    return ""


def _play_terminal(client: SandboxClient, block: Block, terminal: Terminal) -> str:
    write_project(Path("project"), "./project", {})
    transcript = split_transcript(block.text)
    (rules,) = statement_values(transcript.python)
    for sitting in terminal.sittings:
        with Sandbox.from_local("./project", permissions=[*sitting.beside, *rules], client=client) as sandbox:
            for command, _ in transcript.commands:
                sandbox.run(command)
    return ""


def _play_in_sandbox(client: SandboxClient, block: Block, sample: InSandbox) -> str:
    write_project(Path("project"), "./project", {"sample.py": block.text, "run.py": _RUN})
    with Sandbox.from_local("./project", permissions=sample.permissions, client=client) as sandbox:
        for ran in sample.runs:
            sandbox.run(ran.command)
    return ""


# As a console does it: a value that nobody takes is shown.
_RUN = """
import sys

path = sys.argv[1]
exec(compile(open("/workspace/sample.py").read(), "sample.py", "single"))
"""


def statement_values(text: str) -> List[List[RuleLike]]:
    """The rules that each statement of a block makes, assigned to a name or not."""
    names: Dict[str, Any] = {}
    values: List[List[RuleLike]] = []
    for statement in ast.parse(text).body:
        if isinstance(statement, (ast.Assign, ast.Expr)):
            value = eval(compile(ast.Expression(statement.value), "rules", "eval"), names)
            values.append([value] if isinstance(value, dict) else list(value))
        else:
            exec(compile(ast.Module([statement], []), "statement", "exec"), names)
    return values


def _refusal(block: Block) -> str:
    try:
        compile(block.text, f"{block.document}.md", "exec")
    except SyntaxError as error:
        return error.msg
    return ""


_PLAYERS: Mapping[type, Callable[[SandboxClient, Block, Any], str]] = {
    Script: _play_script,
    Rules: _play_rules,
    Terminal: _play_terminal,
    InSandbox: _play_in_sandbox,
}
