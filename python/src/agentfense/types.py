"""The words and records of the SDK: enums whose members are strings, and dataclasses that do not change."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, AsyncIterable, ClassVar, Iterable, Mapping, Optional, Sequence, Tuple, Union

from typing_extensions import Literal, TypedDict


class _Word(str, Enum):
    """A word that is as good as its string: `Permission.READ == "read"`, and prints as it."""

    def __str__(self) -> str:
        return str(self.value)


class Permission(_Word):
    """What the rules allow for a path, from nothing to everything."""

    #: Does not exist.
    NONE = "none"
    #: Listed, unreadable.
    VIEW = "view"
    READ = "read"
    WRITE = "write"


class PatternType(_Word):
    """How the pattern of a rule is read."""

    GLOB = "glob"
    DIRECTORY = "directory"
    FILE = "file"


class SandboxStatus(_Word):
    """How far a sandbox is in its life."""

    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    ERROR = "error"


class CodeLanguage(_Word):
    """TypeScript is JavaScript whose types are taken away first; they share contexts."""

    PYTHON = "python"
    JAVASCRIPT = "javascript"
    TYPESCRIPT = "typescript"
    BASH = "bash"


class ProcessKind(_Word):
    """Started by `spawn`; the others are in the hands of whoever runs them."""

    STARTED = "started"
    COMMAND = "command"
    SESSION = "session"
    TERMINAL = "terminal"
    CONTEXT = "context"


class SessionStatus(_Word):
    """Whether the shell of a session still runs."""

    ACTIVE = "active"
    CLOSED = "closed"


class RuntimeType(_Word):
    """How a sandbox is isolated. `MOCK` runs nothing."""

    BWRAP = "bwrap"
    DOCKER = "docker"
    MOCK = "mock"


class NetworkMode(_Word):
    """What of the network a sandbox reaches."""

    NONE = "none"
    #: Nothing but the hosts of a list.
    FILTERED = "filtered"
    #: A network of its own that reaches the internet and nothing private.
    PRIVATE = "private"
    HOST = "host"


class SyncMode(_Word):
    """When changes reach the codebase: after each command, when `apply` or `sync` is called, or not at all."""

    ON_EXEC = "on-exec"
    MANUAL = "manual"
    NEVER = "never"


class EntryKind(_Word):
    """What is at a path."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"
    #: A socket, a fifo and the like, among the changes of a sandbox.
    OTHER = "other"
    #: Nothing, in an upload: whatever is there is removed.
    ABSENT = "absent"


class ChangeKind(_Word):
    """What happened to a path."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    RENAMED = "renamed"


class VersionOrigin(_Word):
    """What made a version of a codebase."""

    UPLOAD = "upload"
    SYNC = "sync"
    ROLLBACK = "rollback"
    DELETE = "delete"
    RENAME = "rename"


class Role(_Word):
    """What an API key may do."""

    ADMIN = "admin"
    USER = "user"
    READ_ONLY = "read-only"


# What callers hand in.


@dataclass(frozen=True)
class PermissionRule:
    """One rule. Without a type, the pattern says how it is read; a higher priority decides first."""

    pattern: str
    permission: Permission = Permission.READ
    type: Optional[PatternType] = None
    priority: int = 0


#: Seconds, or the same as a timedelta.
Seconds = Union[float, timedelta]

#: A line for the shell, or a program and its arguments without a shell.
Command = Union[str, Sequence[str]]

#: Content of a file. What comes in pieces is sent as it comes, and never all in memory.
Content = Union[str, bytes, bytearray, memoryview, Iterable[bytes], AsyncIterable[bytes]]

#: A rule, or the same as a dict with `pattern`, `permission` and, where wanted, `type` and `priority`.
RuleLike = Union[PermissionRule, Mapping[str, Any]]


@dataclass(frozen=True)
class ResourceLimits:
    """What a sandbox may use. None is the server's default."""

    memory_bytes: Optional[int] = None
    #: Microseconds of CPU time per 100,000: 50_000 is half a CPU.
    cpu_quota: Optional[int] = None
    cpu_shares: Optional[int] = None
    pids_limit: Optional[int] = None
    #: Of what the sandbox changes.
    disk_bytes: Optional[int] = None
    disk_files: Optional[int] = None
    #: Kept of each stream of a command.
    output_bytes: Optional[int] = None


@dataclass(frozen=True)
class NetworkRule:
    """A line of the list of a filtered network."""

    #: A name, or "*.example.com" for all names below one.
    host: str
    #: Without any: 443 and 80.
    ports: Sequence[int] = ()
    #: With methods or paths, TLS to the host is opened to look at requests. Without any: all.
    methods: Sequence[str] = ()
    #: "/v1/*"
    paths: Sequence[str] = ()
    #: Networks such as "10.1.0.0/16": the host is reached at addresses in there alone, which may be private. Without
    #: any: at public ones.
    addresses: Sequence[str] = ()


@dataclass(frozen=True)
class NetworkList:
    """What a sandbox with a filtered network may reach."""

    #: Hosts as "pypi.org", "*.npmjs.org", "github.com:22,443" or "git.example.com@10.1.0.0/16", or as rules.
    allow: Sequence[Union[str, NetworkRule]] = ()
    #: Lists of the server's: "npm", "pypi", "github" …
    presets: Sequence[str] = ()


#: A secret that stays outside of sandboxes: in them a variable of its name holds a placeholder.
#:
#: ========== ==============================================================================
#: value      the value, or one of the next three, which are read here and sent with the request
#: from_env   a variable of this process
#: file       a file, without its last line end
#: command    a line for the shell that prints it
#: hosts      towards these alone it is sent: names, or "*.example.com" for all names below one
#: in         where in a request: "header NAME", "bearer", "basic", "query KEY" or "body"
#: ========== ==============================================================================
SandboxSecret = TypedDict(
    "SandboxSecret",
    {"value": str, "from_env": str, "file": str, "command": str, "hosts": Sequence[str], "in": str},
    total=False,
)

#: By name, with their values or as "kept" for one that the server keeps; or the names of such.
SecretsLike = Union[Sequence[str], Mapping[str, Union[SandboxSecret, Literal["kept"]]]]


@dataclass(frozen=True)
class TlsOptions:
    """PEM texts, as str or bytes."""

    #: Trusted instead of the usual ones.
    ca: Union[str, bytes, None] = None
    #: Of this client, for servers that ask for one.
    cert: Union[str, bytes, None] = None
    key: Union[str, bytes, None] = None


@dataclass(frozen=True)
class ManifestEntry:
    """What a path of a codebase is to be."""

    path: str
    kind: EntryKind = EntryKind.FILE
    #: Permission bits; None is 0o644, for directories 0o755.
    mode: Optional[int] = None
    #: Of a file.
    size: int = 0
    #: Of a file's content, in hexadecimal.
    sha256: str = ""
    #: Of a symbolic link.
    target: str = ""


@dataclass(frozen=True)
class BatchEntry(ManifestEntry):
    """The same with its content, which may be absent where the server has it. Pieces are read when their turn comes."""

    content: Union[bytes, Iterable[bytes], None] = None


# What the server tells of.


@dataclass(frozen=True)
class SandboxInfo:
    """A sandbox as the server sees it."""

    id: str
    codebase_id: str
    owner_id: str
    status: SandboxStatus
    #: Why it is in error; "idle" when it paused by itself, and goes on with the next command; else "".
    status_reason: str
    permissions: Tuple[PermissionRule, ...]
    labels: Mapping[str, str]
    runtime: RuntimeType
    image: str
    resources: ResourceLimits
    network: NetworkMode
    sync: SyncMode
    #: The version it is pinned to; 0 follows the newest.
    codebase_version: int
    revocable: bool
    #: The home it was given; "": it has one of its own.
    home: str
    #: Where its workspace is too, as the home of its commands; "": it is no home.
    workspace_home: str
    #: At its expiry it is paused and kept, and not destroyed.
    pause_at_expiry: bool
    created_at: datetime
    started_at: Optional[datetime] = None
    stopped_at: Optional[datetime] = None
    expires_at: Optional[datetime] = None
    #: It pauses when nothing was asked of it for so long; None: never.
    idle_pause: Optional[timedelta] = None
    #: What it may reach when its network is filtered; those of presets included.
    network_rules: Tuple[NetworkRule, ...] = ()
    #: The names of the secrets that it uses.
    secrets: Tuple[str, ...] = ()


@dataclass(frozen=True)
class SnapshotInfo:
    """What a sandbox had at one moment."""

    id: str
    #: The sandbox that it is of, which may be gone.
    sandbox_id: str
    owner_id: str
    codebase_id: str
    #: The version that the sandbox was pinned to; 0: the newest, whichever that is.
    codebase_version: int
    label: str
    created_at: datetime


@dataclass(frozen=True)
class HomeInfo:
    """A home that outlives sandboxes."""

    name: str
    owner_id: str
    #: The sandbox that runs with it, or "".
    sandbox_id: str


@dataclass(frozen=True)
class SecretInfo:
    """All that can be known of a secret that the server keeps."""

    name: str
    owner_id: str
    hosts: Tuple[str, ...]
    #: Where in a request it is sent: "header NAME", "bearer", "basic", "query KEY" or "body".
    place: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class CommandEnd:
    """How a command ended."""

    #: 128 + n after signal n.
    exit_code: int
    #: "SIGKILL" …, when the exit code speaks of one.
    signal: Optional[str] = None
    timed_out: bool = False
    out_of_memory: bool = False
    duration: timedelta = timedelta(0)
    #: It ended the shell of its session.
    session_closed: bool = False
    #: The codebase's version that the sync after it made; 0 when there was nothing to write.
    synced_version: int = 0
    #: What the sync left out, each as a sentence.
    sync_problems: Tuple[str, ...] = ()


@dataclass(frozen=True)
class ExecResult(CommandEnd):
    """What a command printed, and how it ended. A non-zero exit code and a timeout are results."""

    #: As somebody would type it.
    command: str = ""
    #: UTF-8; what is not, is replaced.
    stdout: str = ""
    stderr: str = ""
    stdout_bytes: bytes = b""
    stderr_bytes: bytes = b""
    #: Some output was beyond the limit and is lost.
    truncated: bool = False

    @property
    def success(self) -> bool:
        """Exit code 0, in time."""
        return self.exit_code == 0 and not self.timed_out

    @property
    def output(self) -> str:
        """Both streams, with a line break between them when there is something in both."""
        return "\n".join(text for text in (self.stdout, self.stderr) if text != "")

    def raise_on_error(self) -> ExecResult:
        """Itself, or CommandTimeoutError and CommandExecutionError for what was no success."""
        # The exceptions have results, so that they import this module.
        from agentfense.exceptions import CommandExecutionError, CommandTimeoutError

        if self.timed_out:
            message = f"the command ran out of time: {self.command}"
            raise CommandTimeoutError(message, code="COMMAND_TIMEOUT", result=self)
        if self.exit_code != 0:
            message = f"the command ended with exit code {self.exit_code}: {self.command}"
            raise CommandExecutionError(message, code="COMMAND_FAILED", result=self)
        return self


@dataclass(frozen=True)
class _OutputEvent:
    data: bytes

    @property
    def text(self) -> str:
        """The piece by itself as UTF-8; a character that two pieces share is replaced in both."""
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class StdoutEvent(_OutputEvent):
    """A piece of what a command prints."""

    kind: ClassVar[Literal["stdout"]] = "stdout"


@dataclass(frozen=True)
class StderrEvent(_OutputEvent):
    """A piece of what a command complains of."""

    kind: ClassVar[Literal["stderr"]] = "stderr"


@dataclass(frozen=True)
class ExitEvent:
    """The end of a command, and of its events."""

    end: CommandEnd
    kind: ClassVar[Literal["exit"]] = "exit"

    @property
    def exit_code(self) -> int:
        """128 + n after signal n."""
        return self.end.exit_code


CommandEvent = Union[StdoutEvent, StderrEvent, ExitEvent]


@dataclass(frozen=True)
class ProcessEnd:
    """How a process ended."""

    #: 128 + n after signal n.
    exit_code: int
    #: "SIGKILL" …, when the exit code speaks of one.
    signal: Optional[str] = None
    timed_out: bool = False
    out_of_memory: bool = False


@dataclass(frozen=True)
class ProcessInfo:
    """A process of a sandbox as the server sees it."""

    #: From 1 on, and never given again as long as the sandbox exists.
    number: int
    sandbox_id: str
    #: "": none.
    tag: str
    owner_id: str
    kind: ProcessKind
    #: As somebody would type it; the beginning of a long one.
    command: str
    #: "running" or "ended".
    state: str
    started_at: datetime
    ended_at: Optional[datetime] = None
    #: None while it runs.
    end: Optional[ProcessEnd] = None


@dataclass(frozen=True)
class ProcessEvent:
    """What a process printed, or, as the last one, how it ended."""

    #: "stdout", "stderr", "terminal" or "exit".
    kind: str
    data: bytes = b""
    #: So many bytes of this stream came before the data and were not kept.
    lost_bytes: int = 0
    #: Of "exit" alone.
    end: Optional[ProcessEnd] = None


@dataclass(frozen=True)
class CodeContextInfo:
    """An interpreter that keeps the names that code gives, as the server sees it."""

    id: str
    sandbox_id: str
    language: CodeLanguage
    #: What runs the code, by its own word: "ipython", "python", "node 24.11.0", "/bin/bash".
    interpreter: str
    workdir: str
    #: The one that code of this language gets when it names none.
    is_default: bool
    created_at: datetime
    #: Pieces of code since its interpreter started.
    execution_count: int
    busy: bool


@dataclass(frozen=True)
class CodeResult:
    """What a piece of code shows: the same thing as several MIME types. All of it is what the sandbox says."""

    #: The value of its last expression; otherwise it was displayed.
    is_main: bool
    #: MIME types and what each has; what is no text is in base64.
    data: Mapping[str, str]
    #: MIME types that were too large.
    dropped: Sequence[str] = ()

    @property
    def text(self) -> Optional[str]:
        """As plain text."""
        return self.data.get("text/plain")

    @property
    def html(self) -> Optional[str]:
        """As HTML."""
        return self.data.get("text/html")

    @property
    def markdown(self) -> Optional[str]:
        """As Markdown."""
        return self.data.get("text/markdown")

    @property
    def svg(self) -> Optional[str]:
        """As SVG."""
        return self.data.get("image/svg+xml")

    @property
    def png(self) -> Optional[str]:
        """In base64, as `jpeg` and `pdf`."""
        return self.data.get("image/png")

    @property
    def jpeg(self) -> Optional[str]:
        """In base64."""
        return self.data.get("image/jpeg")

    @property
    def pdf(self) -> Optional[str]:
        """In base64."""
        return self.data.get("application/pdf")

    @property
    def latex(self) -> Optional[str]:
        """As LaTeX."""
        return self.data.get("text/latex")

    @property
    def javascript(self) -> Optional[str]:
        """As JavaScript."""
        return self.data.get("application/javascript")

    @property
    def json(self) -> object:
        """As JSON, parsed."""
        return self._parsed("application/json")

    @property
    def table(self) -> Optional[Mapping[str, Sequence[object]]]:
        """Of a table: its columns, each with its values."""
        table = self._parsed("application/vnd.agentfense.data+json")
        return table if isinstance(table, dict) else None

    @property
    def chart(self) -> Optional[Mapping[str, object]]:
        """Of a figure of matplotlib: what is drawn.

        Its `type` is line, scatter, bar, pie, box_and_whisker or superchart.
        """
        chart = self._parsed("application/vnd.agentfense.chart+json")
        return chart if isinstance(chart, dict) else None

    def _parsed(self, mime: str) -> object:
        # Text that is no JSON is nothing: the sandbox says what it likes.
        try:
            parsed: object = json.loads(self.data[mime])
            return parsed
        except (KeyError, ValueError):
            return None


@dataclass(frozen=True)
class CodeError:
    """What went wrong in a piece of code."""

    name: str
    value: str
    traceback: str


@dataclass(frozen=True)
class CodeStart:
    """A piece of code has its turn."""

    context_id: str
    execution_count: int
    #: Why the names of earlier code are gone.
    restarted: Optional[str] = None


@dataclass(frozen=True)
class CodeEnd:
    """How a piece of code ended."""

    #: Of a shell's last command; otherwise 0, or 1 after an error.
    exit_code: int
    timed_out: bool = False
    #: Something was beyond the limit of output and is lost.
    truncated: bool = False
    out_of_memory: bool = False
    #: The interpreter has ended, with all that it knew; the next code gets a new one.
    context_lost: bool = False
    duration: timedelta = timedelta(0)
    #: The codebase's version that the sync after it made; 0 when there was nothing to write.
    synced_version: int = 0
    #: What the sync left out, each as a sentence.
    sync_problems: Sequence[str] = ()


@dataclass(frozen=True)
class CodeEvent:
    """What a piece of code does: first a start, last an end; each has one member but `kind`."""

    #: "started", "stdout", "stderr", "result", "error" or "end".
    kind: str
    data: bytes = b""
    start: Optional[CodeStart] = None
    result: Optional[CodeResult] = None
    error: Optional[CodeError] = None
    end: Optional[CodeEnd] = None


@dataclass(frozen=True)
class CodeExecution(CodeEnd):
    """What became of a piece of code, and how it ended. An error of the code is a result."""

    context_id: str = ""
    execution_count: int = 0
    #: Why the names of earlier code are gone.
    restarted: Optional[str] = None
    #: What it displayed, and at last the value of its last expression.
    results: Sequence[CodeResult] = ()
    stdout: str = ""
    stderr: str = ""
    error: Optional[CodeError] = None

    @property
    def text(self) -> Optional[str]:
        """The value of its last expression as text."""
        return next((result.text for result in reversed(self.results) if result.is_main), None)


@dataclass(frozen=True)
class SessionInfo:
    """A session as the server sees it."""

    id: str
    sandbox_id: str
    status: SessionStatus
    shell: str
    #: closed, exited, killed, idle, stopped or server_restarted; "" while it is active.
    close_reason: str
    created_at: datetime
    closed_at: Optional[datetime] = None


@dataclass(frozen=True)
class Codebase:
    """Files on the server that sandboxes are made of."""

    id: str
    name: str
    owner_id: str
    #: Bytes in regular files.
    size: int
    file_count: int
    #: Grows by one with every change.
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class PortInfo:
    """Where a port of a sandbox is reached."""

    sandbox_id: str
    port: int
    #: For programs: with a key, or the token as the header X-Agentfense-Token.
    url: str
    #: For browsers on the server's machine: an origin of its own, with the token in it.
    host_url: str
    token: str
    expires_at: datetime


@dataclass(frozen=True)
class FileInfo:
    """A file of a codebase, or of a sandbox's view (then with `permission`)."""

    path: str
    name: str
    kind: EntryKind
    size: int
    mode: int
    modified_at: datetime
    #: Of a symbolic link, else "".
    target: str = ""
    #: In hexadecimal; "" in a view.
    sha256: str = ""
    permission: Optional[Permission] = None
    #: Extended attributes by their names without "user."; of a view, where they were asked for.
    attributes: Optional[Mapping[str, str]] = None

    @property
    def is_dir(self) -> bool:
        """A directory; a link to one is a link."""
        return self.kind is EntryKind.DIRECTORY

    @property
    def is_file(self) -> bool:
        """A regular file."""
        return self.kind is EntryKind.FILE

    @property
    def is_symlink(self) -> bool:
        """A symbolic link, wherever it leads."""
        return self.kind is EntryKind.SYMLINK


@dataclass(frozen=True)
class UploadResult:
    """One file that was uploaded, and the version that this made."""

    path: str
    size: int
    #: In hexadecimal.
    sha256: str
    version: int

    @property
    def checksum(self) -> str:
        """The same as `sha256`."""
        return self.sha256

    @property
    def file_path(self) -> str:
        """The same as `path`."""
        return self.path


@dataclass(frozen=True)
class BatchResult:
    """What came of changing many files as one version."""

    version: int
    files_changed: int
    bytes_received: int


@dataclass(frozen=True)
class DirectoryUploadResult(BatchResult):
    """What came of uploading a directory."""

    files: int
    bytes: int
    files_sent: int
    bytes_sent: int
    #: What stayed behind and why, each as a sentence.
    left_out: Tuple[str, ...]


@dataclass(frozen=True)
class VersionChange:
    """One path that a version changed."""

    kind: ChangeKind
    path: str
    size: int
    #: A machine may run or trust it without being asked to, or it is a link out of the codebase.
    sensitive: bool = False


@dataclass(frozen=True)
class VersionConflict:
    """Newer work of somebody else that a version replaced."""

    path: str
    replaced_version: int
    replaced_sandbox_id: str


@dataclass(frozen=True)
class Version:
    """One state of a codebase."""

    codebase_id: str
    version: int
    origin: VersionOrigin
    #: The sandbox whose changes these are, for a sync; else "".
    sandbox_id: str
    message: str
    created_at: datetime
    files_changed: int
    #: Size and count of the whole codebase at this version.
    size: int
    file_count: int
    #: Empty in a list of versions.
    changes: Tuple[VersionChange, ...] = ()
    conflicts: Tuple[VersionConflict, ...] = ()


@dataclass(frozen=True)
class ChangeCounts:
    """How many changes there are of each kind."""

    added: int
    modified: int
    deleted: int
    renamed: int


@dataclass(frozen=True)
class Change:
    """Something that a sandbox changed."""

    kind: ChangeKind
    #: "/src/a.py": relative to the workspace.
    path: str
    #: Where it was, when it was renamed; else "".
    old_path: str
    type: EntryKind
    size: int
    #: Of a folded list: it stands for all ignored changes in this directory, so many of each kind.
    folded: Optional[ChangeCounts] = None
    #: The host may run or trust it without being asked to, or it is a link out of the workspace; of a folded one,
    #: something in it.
    sensitive: bool = False


@dataclass(frozen=True)
class FileDiff:
    """A change, line by line."""

    change: Change
    #: Of a binary file or one that is too large only that it differs, unless a patch was asked for.
    unified: str
    #: The content is not shown as lines.
    binary: bool


@dataclass(frozen=True)
class ApplyOutcome:
    """What became of one change."""

    change: Change
    applied: bool
    #: Why not, or what else there is to know; else "".
    reason: str
    #: The host may run or trust it without being asked to, or it is a link out of the workspace.
    sensitive: bool
    #: It replaced newer work of somebody else.
    conflict: bool


@dataclass(frozen=True)
class ApplyResult:
    """What came of applying changes."""

    #: 0 when nothing was written.
    version: int
    outcomes: Tuple[ApplyOutcome, ...]


@dataclass(frozen=True)
class RuleCandidate:
    """A rule that has something to say about a path."""

    #: Index into the sandbox's rules.
    index: int
    rule: PermissionRule
    reason: str


@dataclass(frozen=True)
class PathExplanation:
    """Why a path has its level."""

    path: str
    permission: Permission
    #: None when no rule matches and the path is hidden by default.
    deciding: Optional[RuleCandidate]
    losing: Tuple[RuleCandidate, ...]
    #: The whole answer in words.
    text: str


@dataclass(frozen=True)
class AuditEvent:
    """An entry of the audit log."""

    #: Grows by one with every event of the server.
    sequence: int
    time: datetime
    #: sandbox_created, command_executed, permission_denied …
    type: str
    #: info, warn or error.
    level: str
    owner_id: str
    key_id: str
    sandbox_id: str
    codebase_id: str
    session_id: str
    data: Mapping[str, Any] = field(default_factory=dict)
    hash: str = ""


@dataclass(frozen=True)
class FileChange:
    """A change of a watched path."""

    #: `rename`: a name came or went; `change`: content or attributes did.
    event_type: str
    #: Relative to what is watched.
    filename: str
    #: What it was: `made`, `removed`, `moved-away`, `moved-here`, `written` or `attributes`; None: that is not known.
    cause: Optional[str] = None


@dataclass(frozen=True)
class ServerInfo:
    """What a server is, what it can do, and who it takes the caller for."""

    version: str
    #: The default one first.
    runtimes: Tuple[RuntimeType, ...]
    #: Limits that this server cannot enforce, each as a sentence.
    degradations: Tuple[str, ...]
    keys_required: bool
    owner_id: str
    role: Role


@dataclass(frozen=True)
class ApiKey:
    """An API key, without its secret."""

    id: str
    owner_id: str
    role: Role
    name: str
    created_at: datetime
    revoked_at: Optional[datetime] = None
    last_used_at: Optional[datetime] = None


@dataclass(frozen=True)
class CreatedKey:
    """A new API key. The secret is shown this once."""

    key: ApiKey
    secret: str


# What this side tells of.


@dataclass(frozen=True)
class UploadProgress:
    """How far an upload is."""

    #: "reading" or "uploading".
    phase: str
    done_bytes: int
    total_bytes: int
    files: int


@dataclass(frozen=True)
class PresetSummary:
    """A preset by name, with what it is for."""

    name: str
    description: str
    #: Comes with the product; cannot be registered over.
    built_in: bool
