# Generated from src/agentfense/_async/execution_start.py by scripts/generate_sync.py: change it there.
"""The three ways in which a command comes to run behind a handle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping, Optional, Union

from agentfense._messages.command import command_text
from agentfense._sandbox.output import OutputCallback
from agentfense._sync.execution import Execution
from agentfense.types import Command, Seconds

if TYPE_CHECKING:
    from agentfense._sync.client import SandboxClient


def start_command(
    client: SandboxClient,
    sandbox_id: str,
    command: Command,
    env: Optional[Mapping[str, str]],
    workdir: Optional[str],
    timeout: Optional[Seconds],
    on_stdout: Optional[OutputCallback],
    on_stderr: Optional[OutputCallback],
) -> Execution:
    """Starts a command whose input may be sent while it runs."""
    call = client._open_command(sandbox_id, command, env=env, workdir=workdir, timeout=timeout)
    return Execution(command_text(command), call, stdin=call, on_stdout=on_stdout, on_stderr=on_stderr)


def start_closed_command(
    client: SandboxClient,
    sandbox_id: str,
    command: Command,
    stdin: Union[str, bytes, None],
    env: Optional[Mapping[str, str]],
    workdir: Optional[str],
    timeout: Optional[Seconds],
    on_stdout: Optional[OutputCallback],
    on_stderr: Optional[OutputCallback],
) -> Execution:
    """Starts a command that gets no other input than this, if any."""
    call = client.exec_stream(sandbox_id, command, stdin, env, workdir, timeout)
    return Execution(command_text(command), call, on_stdout=on_stdout, on_stderr=on_stderr)


def start_session_command(
    client: SandboxClient,
    session_id: str,
    command: str,
    timeout: Optional[Seconds],
    on_stdout: Optional[OutputCallback],
    on_stderr: Optional[OutputCallback],
) -> Execution:
    """Starts a line in the shell of a session."""
    call = client.session_exec_stream(session_id, command, timeout)
    return Execution(command, call, on_stdout=on_stdout, on_stderr=on_stderr)
