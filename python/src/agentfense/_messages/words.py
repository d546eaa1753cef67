"""The words of this SDK, and the numbers by which they travel. Zero is "not given" in all of them."""

from __future__ import annotations

from enum import Enum
from typing import Generic, Mapping, TypeVar, Union

from agentfense._wire.sandbox.v1 import codebase_pb2, common_pb2, sandbox_pb2, system_pb2
from agentfense.exceptions import InvalidConfigurationError, SandboxError
from agentfense.types import (
    ChangeKind,
    CodeLanguage,
    EntryKind,
    NetworkMode,
    PatternType,
    Permission,
    ProcessKind,
    Role,
    RuntimeType,
    SandboxStatus,
    SessionStatus,
    SyncMode,
    VersionOrigin,
)

Word = TypeVar("Word", bound=Enum)
Number = TypeVar("Number", bound=int)


class Words(Generic[Word, Number]):
    """One table of words and numbers, read in both directions."""

    def __init__(self, what: str, not_given: Number, numbers: Mapping[Word, Number]) -> None:
        self._what = what
        self._not_given = not_given
        self._numbers = {str(word.value): number for word, number in numbers.items()}
        self._words = {int(number): word for word, number in numbers.items()}

    def number(self, word: Union[Word, str, None]) -> Number:
        """The number of a word or of its string; None is "not given"."""
        if word is None:
            return self._not_given
        text: object = word.value if isinstance(word, Enum) else word
        if isinstance(text, str) and text in self._numbers:
            return self._numbers[text]
        raise InvalidConfigurationError(f"{self._what} must be one of {', '.join(self._numbers)}, not {word!r}")

    def word(self, number: int) -> Word:
        """The word for a number. A server that is newer than this client may have numbers that it does not know."""
        if number in self._words:
            return self._words[number]
        message = f"the server sent a {self._what} that this client does not know: {number}"
        raise SandboxError(message, hint="update the client")


PERMISSIONS = Words(
    "permission",
    common_pb2.PERMISSION_UNSPECIFIED,
    {
        Permission.NONE: common_pb2.PERMISSION_NONE,
        Permission.VIEW: common_pb2.PERMISSION_VIEW,
        Permission.READ: common_pb2.PERMISSION_READ,
        Permission.WRITE: common_pb2.PERMISSION_WRITE,
    },
)

PATTERN_TYPES = Words(
    "type",
    common_pb2.PATTERN_TYPE_UNSPECIFIED,
    {
        PatternType.GLOB: common_pb2.PATTERN_TYPE_GLOB,
        PatternType.DIRECTORY: common_pb2.PATTERN_TYPE_DIRECTORY,
        PatternType.FILE: common_pb2.PATTERN_TYPE_FILE,
    },
)

SANDBOX_STATUSES = Words(
    "status",
    common_pb2.SANDBOX_STATUS_UNSPECIFIED,
    {
        SandboxStatus.PENDING: common_pb2.SANDBOX_STATUS_PENDING,
        SandboxStatus.RUNNING: common_pb2.SANDBOX_STATUS_RUNNING,
        SandboxStatus.PAUSED: common_pb2.SANDBOX_STATUS_PAUSED,
        SandboxStatus.STOPPED: common_pb2.SANDBOX_STATUS_STOPPED,
        SandboxStatus.ERROR: common_pb2.SANDBOX_STATUS_ERROR,
    },
)

SESSION_STATUSES = Words(
    "status",
    common_pb2.SESSION_STATUS_UNSPECIFIED,
    {
        SessionStatus.ACTIVE: common_pb2.SESSION_STATUS_ACTIVE,
        SessionStatus.CLOSED: common_pb2.SESSION_STATUS_CLOSED,
    },
)

CODE_LANGUAGES = Words(
    "language",
    sandbox_pb2.CODE_LANGUAGE_UNSPECIFIED,
    {
        CodeLanguage.PYTHON: sandbox_pb2.CODE_LANGUAGE_PYTHON,
        CodeLanguage.JAVASCRIPT: sandbox_pb2.CODE_LANGUAGE_JAVASCRIPT,
        CodeLanguage.TYPESCRIPT: sandbox_pb2.CODE_LANGUAGE_TYPESCRIPT,
        CodeLanguage.BASH: sandbox_pb2.CODE_LANGUAGE_BASH,
    },
)

PROCESS_KINDS = Words(
    "kind of a process",
    sandbox_pb2.PROCESS_KIND_UNSPECIFIED,
    {
        ProcessKind.STARTED: sandbox_pb2.PROCESS_KIND_STARTED,
        ProcessKind.COMMAND: sandbox_pb2.PROCESS_KIND_COMMAND,
        ProcessKind.SESSION: sandbox_pb2.PROCESS_KIND_SESSION,
        ProcessKind.TERMINAL: sandbox_pb2.PROCESS_KIND_TERMINAL,
        ProcessKind.CONTEXT: sandbox_pb2.PROCESS_KIND_CONTEXT,
    },
)

RUNTIMES = Words(
    "runtime",
    sandbox_pb2.RUNTIME_TYPE_UNSPECIFIED,
    {
        RuntimeType.BWRAP: sandbox_pb2.RUNTIME_TYPE_BWRAP,
        RuntimeType.DOCKER: sandbox_pb2.RUNTIME_TYPE_DOCKER,
        RuntimeType.MOCK: sandbox_pb2.RUNTIME_TYPE_MOCK,
    },
)

NETWORKS = Words(
    "network",
    sandbox_pb2.NETWORK_MODE_UNSPECIFIED,
    {
        NetworkMode.NONE: sandbox_pb2.NETWORK_MODE_NONE,
        NetworkMode.FILTERED: sandbox_pb2.NETWORK_MODE_FILTERED,
        NetworkMode.PRIVATE: sandbox_pb2.NETWORK_MODE_PRIVATE,
        NetworkMode.HOST: sandbox_pb2.NETWORK_MODE_HOST,
    },
)

SYNC_MODES = Words(
    "sync",
    sandbox_pb2.SYNC_MODE_UNSPECIFIED,
    {
        SyncMode.ON_EXEC: sandbox_pb2.SYNC_MODE_ON_EXEC,
        SyncMode.MANUAL: sandbox_pb2.SYNC_MODE_MANUAL,
        SyncMode.NEVER: sandbox_pb2.SYNC_MODE_NEVER,
    },
)

VERSION_ORIGINS = Words(
    "origin",
    codebase_pb2.VERSION_ORIGIN_UNSPECIFIED,
    {
        VersionOrigin.UPLOAD: codebase_pb2.VERSION_ORIGIN_UPLOAD,
        VersionOrigin.SYNC: codebase_pb2.VERSION_ORIGIN_SYNC,
        VersionOrigin.ROLLBACK: codebase_pb2.VERSION_ORIGIN_ROLLBACK,
        VersionOrigin.DELETE: codebase_pb2.VERSION_ORIGIN_DELETE,
        VersionOrigin.RENAME: codebase_pb2.VERSION_ORIGIN_RENAME,
    },
)

CHANGE_KINDS = Words(
    "kind of change",
    codebase_pb2.CHANGE_KIND_UNSPECIFIED,
    {
        ChangeKind.ADDED: codebase_pb2.CHANGE_KIND_ADDED,
        ChangeKind.MODIFIED: codebase_pb2.CHANGE_KIND_MODIFIED,
        ChangeKind.DELETED: codebase_pb2.CHANGE_KIND_DELETED,
        ChangeKind.RENAMED: codebase_pb2.CHANGE_KIND_RENAMED,
    },
)

#: Of an entry of a manifest.
MANIFEST_KINDS = Words(
    "kind",
    codebase_pb2.ENTRY_KIND_UNSPECIFIED,
    {
        EntryKind.FILE: codebase_pb2.ENTRY_KIND_FILE,
        EntryKind.DIRECTORY: codebase_pb2.ENTRY_KIND_DIRECTORY,
        EntryKind.SYMLINK: codebase_pb2.ENTRY_KIND_SYMLINK,
        EntryKind.ABSENT: codebase_pb2.ENTRY_KIND_ABSENT,
    },
)

#: Of what changed. Sockets, fifos and the like have no number of their own.
CHANGE_TYPES = Words(
    "kind of file",
    codebase_pb2.ENTRY_KIND_UNSPECIFIED,
    {
        EntryKind.FILE: codebase_pb2.ENTRY_KIND_FILE,
        EntryKind.DIRECTORY: codebase_pb2.ENTRY_KIND_DIRECTORY,
        EntryKind.SYMLINK: codebase_pb2.ENTRY_KIND_SYMLINK,
        EntryKind.OTHER: codebase_pb2.ENTRY_KIND_UNSPECIFIED,
    },
)

ROLES = Words(
    "role",
    system_pb2.ROLE_UNSPECIFIED,
    {
        Role.ADMIN: system_pb2.ROLE_ADMIN,
        Role.USER: system_pb2.ROLE_USER,
        Role.READ_ONLY: system_pb2.ROLE_READ_ONLY,
    },
)
