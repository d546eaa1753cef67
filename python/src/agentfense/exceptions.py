"""What goes wrong with a sandbox, as exceptions. Each is also the built-in exception that it resembles."""

from __future__ import annotations

import builtins
from typing import Dict, Mapping, Optional, Sequence, Type

from typing_extensions import TypedDict, Unpack

from agentfense.types import ExecResult


class ErrorFacts(TypedDict, total=False):
    """What an error may be made with besides its message."""

    code: str
    retryable: bool
    hint: Optional[str]
    details: Optional[Mapping[str, str]]
    grpc_code: Optional[str]


class SandboxError(Exception):
    """Everything that goes wrong with a sandbox. A command that fails is no error, unless `check` asks for one."""

    #: A code of the server's registry, or one of CONNECTION_FAILED, COMMAND_FAILED, UPLOAD_FAILED, UNKNOWN.
    code: str = "UNKNOWN"
    #: The same call may succeed later, unchanged.
    retryable: bool
    #: What to do about it.
    hint: Optional[str]
    #: Facts, by name: sandbox_id, path …
    details: Mapping[str, str]
    #: The name of the gRPC status that it came with, "NOT_FOUND" …; None for what no server told of.
    grpc_code: Optional[str]

    def __init__(self, message: str, **facts: Unpack[ErrorFacts]) -> None:
        super().__init__(message)
        self.message = message
        self.code = facts.get("code", type(self).code)
        self.retryable = facts.get("retryable", False)
        self.hint = facts.get("hint")
        self.details = dict(facts.get("details") or {})
        self.grpc_code = facts.get("grpc_code")

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message} ({self.hint})"


class ConnectionError(SandboxError, builtins.ConnectionError):
    """The server cannot be reached, went away, or did not answer in time."""


class AuthenticationError(SandboxError):
    """The server wants an API key, and knows none like this one."""


class InvalidConfigurationError(SandboxError, ValueError):
    """Something in the call itself is wrong: an option, a rule, a path, an unknown preset."""

    code = "INVALID_ARGUMENT"


class SandboxNotFoundError(SandboxError):
    """No such sandbox, or it belongs to somebody else."""


class SandboxNotRunningError(SandboxError):
    """It was not started, was stopped, or failed."""


class RuntimeUnavailableError(SandboxError):
    """The server cannot isolate in the way that was asked for."""


class PermissionDeniedError(SandboxError, builtins.PermissionError):
    """The rules of the sandbox, or the role of the API key, do not allow it."""


class ResourceLimitExceededError(SandboxError):
    """A limit of the server, of the owner or of the sandbox."""


class CodebaseError(SandboxError):
    """What has to do with files: those of a codebase, and those that a sandbox sees."""


class CodebaseNotFoundError(CodebaseError):
    """No such codebase, or it belongs to somebody else."""


class FileNotFoundError(CodebaseError, builtins.FileNotFoundError):
    """Not there, or hidden by the rules: the two look the same from inside a sandbox."""


class VersionConflictError(CodebaseError):
    """Somebody else changed the codebase first."""


class UploadError(CodebaseError):
    """What was to be uploaded cannot be read, or changed meanwhile."""

    code = "UPLOAD_FAILED"
    #: What could not be read, if that is the reason: paths relative to the directory.
    unreadable: Sequence[str]

    def __init__(self, message: str, *, unreadable: Sequence[str] = (), **facts: Unpack[ErrorFacts]) -> None:
        super().__init__(message, **facts)
        self.unreadable = tuple(unreadable)


#: A timeout of which the server told nothing but that it was one.
_UNKNOWN_RESULT = ExecResult(exit_code=137, signal="SIGKILL", timed_out=True, truncated=True)


class CommandError(SandboxError):
    """A command ended otherwise than `check` wants it to."""

    code = "COMMAND_FAILED"
    #: All that is known of it, with what it printed.
    result: ExecResult

    def __init__(self, message: str, *, result: ExecResult = _UNKNOWN_RESULT, **facts: Unpack[ErrorFacts]) -> None:
        super().__init__(message, **facts)
        self.result = result

    @property
    def command(self) -> str:
        """The command, as somebody would type it."""
        return self.result.command

    @property
    def exit_code(self) -> int:
        """128 + n after signal n."""
        return self.result.exit_code

    @property
    def stdout(self) -> str:
        """What it printed up to its end."""
        return self.result.stdout

    @property
    def stderr(self) -> str:
        """What it complained of up to its end."""
        return self.result.stderr


class CommandTimeoutError(CommandError, builtins.TimeoutError):
    """Its time was up."""


class CommandExecutionError(CommandError):
    """It ended with another exit code than 0."""


class SessionError(SandboxError):
    """What has to do with a session."""


class SessionNotFoundError(SessionError):
    """No such session."""


class SessionClosedError(SessionError):
    """Its shell has ended."""


class ProcessError(SandboxError):
    """There is no such process; it has ended, or has not what the call needs; or it was read too slowly."""


class PortClosedError(SandboxError):
    """Nothing accepts connections at a port of the sandbox."""


#: The class of each error that a server can tell of: one row for every code of its registry.
ERROR_CLASSES: Dict[str, Type[SandboxError]] = {
    "INVALID_ARGUMENT": InvalidConfigurationError,
    "UNAUTHENTICATED": AuthenticationError,
    "ROLE_FORBIDS": PermissionDeniedError,
    "CODEBASE_NOT_FOUND": CodebaseNotFoundError,
    "CODEBASE_IN_USE": CodebaseError,
    "CODEBASE_IS_LOCAL": CodebaseError,
    "FILE_NOT_FOUND": FileNotFoundError,
    "VERSION_NOT_FOUND": CodebaseError,
    "VERSION_CONFLICT": VersionConflictError,
    "CONTENT_MISSING": UploadError,
    "UPLOAD_MISMATCH": UploadError,
    "SANDBOX_NOT_FOUND": SandboxNotFoundError,
    "SANDBOX_ALREADY_RUNNING": SandboxError,
    "SANDBOX_NOT_RUNNING": SandboxNotRunningError,
    "SANDBOX_PAUSED": SandboxNotRunningError,
    "SANDBOX_FAILED": SandboxNotRunningError,
    "SYNC_REFUSED": SandboxError,
    "SESSION_NOT_FOUND": SessionNotFoundError,
    "SESSION_CLOSED": SessionClosedError,
    "CONTEXT_NOT_FOUND": SandboxError,
    "PORT_CLOSED": PortClosedError,
    "HOME_NOT_FOUND": SandboxError,
    "HOME_IN_USE": SandboxError,
    "SNAPSHOT_NOT_FOUND": SandboxError,
    "SNAPSHOT_REFUSED": SandboxError,
    "SECRET_NOT_FOUND": SandboxError,
    "SEALING_KEY_MISSING": SandboxError,
    "PROCESS_NOT_FOUND": ProcessError,
    "PROCESS_UNSUITABLE": ProcessError,
    "READER_TOO_SLOW": ProcessError,
    "KEY_NOT_FOUND": SandboxError,
    "COMMAND_TIMEOUT": CommandTimeoutError,
    "WORKDIR_UNUSABLE": InvalidConfigurationError,
    "PROGRAM_NOT_FOUND": InvalidConfigurationError,
    "RUNTIME_UNAVAILABLE": RuntimeUnavailableError,
    "IMAGE_NOT_FOUND": RuntimeUnavailableError,
    "FILE_PERMISSION_DENIED": PermissionDeniedError,
    "FILE_EXISTS": CodebaseError,
    "FILE_WRONG_KIND": CodebaseError,
    "LIMIT_EXCEEDED": ResourceLimitExceededError,
    "RATE_LIMITED": ResourceLimitExceededError,
    "RESOURCES_EXHAUSTED": ResourceLimitExceededError,
    "DATABASE_UNAVAILABLE": ConnectionError,
    "SHUTTING_DOWN": ConnectionError,
    "CANCELLED": SandboxError,
    "INTERNAL": SandboxError,
}

#: Those after which the same call may succeed later, unchanged.
RETRYABLE_CODES = frozenset({"DATABASE_UNAVAILABLE", "RATE_LIMITED", "RESOURCES_EXHAUSTED", "SHUTTING_DOWN"})
