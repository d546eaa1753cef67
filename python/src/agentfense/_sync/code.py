# Generated from src/agentfense/_async/code.py by scripts/generate_sync.py: change it there.
"""Code in a sandbox, and contexts that keep its names."""

from __future__ import annotations

from types import TracebackType
from typing import Callable, List, Mapping, Optional, Type, Union

from agentfense._face.callback import Callback
from agentfense._sandbox.output import OutputCallback, TextPieces
from agentfense._sync.client import SandboxClient
from agentfense.exceptions import SandboxError
from agentfense.types import (
    CodeContextInfo,
    CodeEnd,
    CodeError,
    CodeExecution,
    CodeLanguage,
    CodeResult,
    CodeStart,
    Seconds,
)

CODE_TIMEOUT = 60.0


class CodeContext:
    """An interpreter in the sandbox that keeps the names that code gives. The end of its `with` block removes it.

    `create_code_context` and `code_contexts` of a sandbox make one.
    """

    def __init__(self, client: SandboxClient, info: CodeContextInfo) -> None:
        """For a sandbox, which makes one."""
        self._client = client
        #: As the server last said.
        self.info = info
        self.id = info.id
        self.language = info.language
        self.workdir = info.workdir

    def run(
        self,
        code: str,
        *,
        language: Union[CodeLanguage, str, None] = None,
        on_stdout: Optional[OutputCallback] = None,
        on_stderr: Optional[OutputCallback] = None,
        on_result: Optional[Callable[[CodeResult], object]] = None,
        on_error: Optional[Callable[[CodeError], object]] = None,
        timeout: Optional[Seconds] = CODE_TIMEOUT,
        env: Optional[Mapping[str, str]] = None,
    ) -> CodeExecution:
        """Runs code when that of others is through, and waits for its end. The arguments are those of `run_code`."""
        return run_code(
            self._client,
            self.info.sandbox_id,
            code,
            language=language,
            context=self.id,
            on_stdout=on_stdout,
            on_stderr=on_stderr,
            on_result=on_result,
            on_error=on_error,
            timeout=timeout,
            env=env,
        )

    def interrupt(self) -> None:
        """What runs ends with a KeyboardInterrupt; the names stay."""
        self._client.interrupt_code_context(self.info.sandbox_id, self.id)

    def restart(self) -> None:
        """Ends the interpreter with all that it started, and begins with a new one."""
        self._client.restart_code_context(self.info.sandbox_id, self.id)

    def remove(self) -> None:
        """Ends it. One that is gone already is no error."""
        try:
            self._client.delete_code_context(self.info.sandbox_id, self.id)
        except SandboxError as error:
            if error.code != "CONTEXT_NOT_FOUND":
                raise

    def __enter__(self) -> CodeContext:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        try:
            self.remove()
        except SandboxError:
            # What went wrong first is what has to be heard of.
            if error is None:
                raise


def run_code(
    client: SandboxClient,
    sandbox_id: str,
    code: str,
    *,
    language: Union[CodeLanguage, str, None],
    context: Union[CodeContext, str, None],
    on_stdout: Optional[OutputCallback],
    on_stderr: Optional[OutputCallback],
    on_result: Optional[Callable[[CodeResult], object]],
    on_error: Optional[Callable[[CodeError], object]],
    timeout: Optional[Seconds],
    env: Optional[Mapping[str, str]],
) -> CodeExecution:
    """Runs code to its end, for a sandbox or a context."""
    context_id = context.id if isinstance(context, CodeContext) else context
    outputs = {"stdout": _Text(on_stdout), "stderr": _Text(on_stderr)}
    start = CodeStart(context_id or "", 0)
    results: List[CodeResult] = []
    failure: Optional[CodeError] = None
    end = CodeEnd(0)
    stream = client.run_code(sandbox_id, code, language=language, context_id=context_id, env=env, timeout=timeout)
    with stream as events:
        for event in events:
            if event.kind in outputs:
                outputs[event.kind].take(event.data)
            elif event.start is not None:
                start = event.start
            elif event.result is not None:
                results.append(event.result)
                if on_result is not None:
                    Callback.tell(on_result, event.result)
            elif event.error is not None:
                failure = event.error
                if on_error is not None:
                    Callback.tell(on_error, event.error)
            elif event.end is not None:
                end = event.end
    return CodeExecution(
        **vars(end),
        context_id=start.context_id,
        execution_count=start.execution_count,
        restarted=start.restarted,
        results=tuple(results),
        stdout=outputs["stdout"].end(),
        stderr=outputs["stderr"].end(),
        error=failure,
    )


class _Text:
    """One output, decoded piece by piece."""

    def __init__(self, callback: Optional[OutputCallback]) -> None:
        self._callback = callback
        self._pieces = TextPieces()
        self._kept: List[str] = []

    def take(self, data: bytes) -> None:
        self._tell(self._pieces.add(data))

    def end(self) -> str:
        self._tell(self._pieces.end())
        return "".join(self._kept)

    def _tell(self, text: str) -> None:
        self._kept.append(text)
        if text != "" and self._callback is not None:
            Callback.tell(self._callback, text)
