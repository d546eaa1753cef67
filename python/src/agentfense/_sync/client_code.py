# Generated from src/agentfense/_async/client_code.py by scripts/generate_sync.py: change it there.
"""Code in contexts, as the client runs it."""

from __future__ import annotations

from typing import List, Mapping, Optional, Union

from agentfense._connection.method import SandboxService
from agentfense._messages.code import code_event_of, context_of, create_context_message, run_code_message
from agentfense._sync.client_base import ClientPart
from agentfense._sync.client_stream import CallStream
from agentfense._wire.sandbox.v1 import sandbox_pb2
from agentfense.exceptions import ConnectionError
from agentfense.types import CodeContextInfo, CodeEvent, CodeLanguage, Seconds


class CodeMethods(ClientPart):
    """Code, and the contexts that keep its names."""

    def create_code_context(
        self,
        sandbox_id: str,
        language: Union[CodeLanguage, str, None] = None,
        *,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
    ) -> CodeContextInfo:
        """Makes an interpreter that stays until it is deleted or the sandbox is stopped.

        Args:
            sandbox_id: Where.
            language: Default: Python.
            env: Variables, besides those of the sandbox.
            workdir: Absolute, or relative to the workspace; default: where commands run.
        """
        request = create_context_message(sandbox_id, language, env, workdir)
        return context_of(self._calls.command(SandboxService.create_code_context, request, None))

    def list_code_contexts(self, sandbox_id: str) -> List[CodeContextInfo]:
        """Tells which there are."""
        request = sandbox_pb2.ListCodeContextsRequest(sandbox_id=sandbox_id)
        answer = self._calls.unary(SandboxService.list_code_contexts, request)
        return [context_of(context) for context in answer.contexts]

    def restart_code_context(self, sandbox_id: str, context_id: str) -> CodeContextInfo:
        """Ends the interpreter with all that it started, and begins with a new one."""
        request = sandbox_pb2.CodeContextRequest(sandbox_id=sandbox_id, context_id=context_id)
        return context_of(self._calls.command(SandboxService.restart_code_context, request, None))

    def interrupt_code_context(self, sandbox_id: str, context_id: str) -> None:
        """The code that runs ends with a KeyboardInterrupt, and the names stay."""
        request = sandbox_pb2.CodeContextRequest(sandbox_id=sandbox_id, context_id=context_id)
        self._calls.unary(SandboxService.interrupt_code_context, request)

    def delete_code_context(self, sandbox_id: str, context_id: str) -> None:
        """Ends it."""
        request = sandbox_pb2.CodeContextRequest(sandbox_id=sandbox_id, context_id=context_id)
        self._calls.unary(SandboxService.delete_code_context, request)

    def run_code(
        self,
        sandbox_id: str,
        code: str,
        *,
        language: Union[CodeLanguage, str, None] = None,
        context_id: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[Seconds] = None,
    ) -> CallStream[CodeEvent]:
        """Runs code: that its turn has come, what it prints and shows as it does, then its end.

        Leaving the loop interrupts it.

        Args:
            sandbox_id: Where.
            code: The code.
            language: Default: that of the context, or Python.
            context_id: Default: the language's own, which is made when it is first used.
            env: For this code alone.
            timeout: Seconds, after which it is interrupted, and the names stay; default: never.
        """
        request = run_code_message(sandbox_id, code, language=language, context_id=context_id, env=env, timeout=timeout)
        answers = self._calls.server_stream(SandboxService.run_code, request)
        return CallStream(answers, code_event_of, is_last=lambda event: event.end is not None, ended_early=_ended_early)


def _ended_early() -> ConnectionError:
    return ConnectionError("the server did not say how the code ended", code="CONNECTION_FAILED")
