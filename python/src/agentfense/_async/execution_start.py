"""The three ways in which a command comes to run behind a handle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping, Optional, Union

from agentfense._async.execution import AsyncExecution
from agentfense._messages.command import command_text
from agentfense._sandbox.output import OutputCallback
from agentfense.types import Command, Seconds

if TYPE_CHECKING:
    from agentfense._async.client import AsyncSandboxClient


def start_command(
    client: AsyncSandboxClient,
    sandbox_id: str,
    command: Command,
    env: Optional[Mapping[str, str]],
    workdir: Optional[str],
    timeout: Optional[Seconds],
    on_stdout: Optional[OutputCallback],
    on_stderr: Optional[OutputCallback],
) -> AsyncExecution:
    """Starts a command whose input may be sent while it runs."""
    call = client._open_command(sandbox_id, command, env=env, workdir=workdir, timeout=timeout)
    return AsyncExecution(command_text(command), call, stdin=call, on_stdout=on_stdout, on_stderr=on_stderr)


def start_closed_command(
    client: AsyncSandboxClient,
    sandbox_id: str,
    command: Command,
    stdin: Union[str, bytes, None],
    env: Optional[Mapping[str, str]],
    workdir: Optional[str],
    timeout: Optional[Seconds],
    on_stdout: Optional[OutputCallback],
    on_stderr: Optional[OutputCallback],
) -> AsyncExecution:
    """Starts a command that gets no other input than this, if any."""
    call = client.exec_stream(sandbox_id, command, stdin, env, workdir, timeout)
    return AsyncExecution(command_text(command), call, on_stdout=on_stdout, on_stderr=on_stderr)


def start_session_command(
    client: AsyncSandboxClient,
    session_id: str,
    command: str,
    timeout: Optional[Seconds],
    on_stdout: Optional[OutputCallback],
    on_stderr: Optional[OutputCallback],
) -> AsyncExecution:
    """Starts a line in the shell of a session."""
    call = client.session_exec_stream(session_id, command, timeout)
    return AsyncExecution(command, call, on_stdout=on_stdout, on_stderr=on_stderr)
