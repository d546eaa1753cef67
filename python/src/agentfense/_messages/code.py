"""Code, and the contexts that keep its names."""

from __future__ import annotations

from typing import Mapping, Optional, Union

from agentfense._messages.numbers import strings
from agentfense._messages.time import duration_message, moment, timedelta_of
from agentfense._messages.words import CODE_LANGUAGES
from agentfense._wire.sandbox.v1 import sandbox_pb2
from agentfense.types import (
    CodeContextInfo,
    CodeEnd,
    CodeError,
    CodeEvent,
    CodeLanguage,
    CodeResult,
    CodeStart,
    Seconds,
)


def create_context_message(
    sandbox_id: str,
    language: Union[CodeLanguage, str, None],
    env: Optional[Mapping[str, str]],
    workdir: Optional[str],
) -> sandbox_pb2.CreateCodeContextRequest:
    """A context on its way to the server."""
    return sandbox_pb2.CreateCodeContextRequest(
        sandbox_id=sandbox_id,
        language=CODE_LANGUAGES.number(language),
        env=strings(env, "env"),
        workdir=workdir or "",
    )


def run_code_message(
    sandbox_id: str,
    code: str,
    *,
    language: Union[CodeLanguage, str, None],
    context_id: Optional[str],
    env: Optional[Mapping[str, str]],
    timeout: Optional[Seconds],
) -> sandbox_pb2.RunCodeRequest:
    """A piece of code on its way to the server."""
    return sandbox_pb2.RunCodeRequest(
        sandbox_id=sandbox_id,
        code=code,
        language=CODE_LANGUAGES.number(language),
        context_id=context_id or "",
        env=strings(env, "env"),
        timeout=duration_message(timeout, "timeout"),
    )


def context_of(message: sandbox_pb2.CodeContext) -> CodeContextInfo:
    """A context as the server sees it."""
    return CodeContextInfo(
        id=message.id,
        sandbox_id=message.sandbox_id,
        language=CODE_LANGUAGES.word(message.language),
        interpreter=message.interpreter,
        workdir=message.workdir,
        is_default=message.is_default,
        created_at=moment(message.created_at),
        execution_count=message.execution_count,
        busy=message.busy,
    )


def code_event_of(message: sandbox_pb2.CodeOutput) -> CodeEvent:
    """What a piece of code does."""
    which = message.WhichOneof("output")
    if which == "started":
        started = message.started
        start = CodeStart(started.context_id, started.execution_count, started.restarted or None)
        return CodeEvent("started", start=start)
    if which == "result":
        result = message.result
        shown = CodeResult(result.is_main, dict(result.data), tuple(result.dropped))
        return CodeEvent("result", result=shown)
    if which == "error":
        error = message.error
        return CodeEvent("error", error=CodeError(error.name, error.value, error.traceback))
    if which == "end":
        return CodeEvent("end", end=_end_of(message.end))
    # A newer server may have more to say: to this client, nothing was printed.
    return CodeEvent("stderr", message.stderr) if which == "stderr" else CodeEvent("stdout", message.stdout)


def _end_of(end: sandbox_pb2.CodeEnd) -> CodeEnd:
    return CodeEnd(
        exit_code=end.exit_code,
        timed_out=end.timed_out,
        truncated=end.truncated,
        out_of_memory=end.out_of_memory,
        context_lost=end.context_lost,
        duration=timedelta_of(end.duration),
        synced_version=end.synced_version,
        sync_problems=tuple(end.sync_problems),
    )
