# Generated from src/agentfense/_async/open_sandbox.py by scripts/generate_sync.py: change it there.
"""A sandbox that is open, and what can be done with it."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Callable, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, Union

from typing_extensions import Literal, Self

from agentfense._face.sync_face import opening
from agentfense._sandbox.output import OutputCallback
from agentfense._sandbox.workspace_path import names_in, workspace_path
from agentfense._sync.client import SandboxClient
from agentfense._sync.code import CODE_TIMEOUT, CodeContext, run_code
from agentfense._sync.connection import Connection
from agentfense._sync.events import follow_events, past_events
from agentfense._sync.execution import Execution
from agentfense._sync.execution_start import start_closed_command, start_command
from agentfense._sync.files import SandboxFiles
from agentfense._sync.opening_existing import start_idempotently
from agentfense._sync.parts import SandboxParts
from agentfense._sync.permissions import SandboxPermissions
from agentfense._sync.port import SandboxPort
from agentfense._sync.process import SandboxProcess
from agentfense._sync.session import Session
from agentfense._sync.terminal import Terminal
from agentfense.exceptions import (
    CodebaseNotFoundError,
    ProcessError,
    SandboxError,
    SandboxNotFoundError,
    SandboxNotRunningError,
)
from agentfense.types import (
    ApplyResult,
    AuditEvent,
    Change,
    Codebase,
    CodeError,
    CodeExecution,
    CodeLanguage,
    CodeResult,
    Command,
    Content,
    ExecResult,
    FileDiff,
    NetworkList,
    NetworkMode,
    NetworkRule,
    PathExplanation,
    PermissionRule,
    ResourceLimits,
    RuleLike,
    RuntimeType,
    SandboxInfo,
    SandboxStatus,
    Seconds,
    SecretsLike,
    SnapshotInfo,
    SyncMode,
)

_RUN_TIMEOUT = 60.0


class OpenSandbox:
    """A sandbox that is open. The end of its `with` block destroys it if this object made it, and else only lets go."""

    def __init__(self, parts: SandboxParts) -> None:
        """For the class methods, which make one."""
        self._parts = parts
        self._info = parts.info
        self._closed = False
        client = parts.connection.client
        self._client = client
        self._files = SandboxFiles(client, self.id)
        self._permissions = SandboxPermissions(client, self.id, self._learn)

    @property
    def id(self) -> str:
        """Its name on the server."""
        return self._info.id

    @property
    def codebase_id(self) -> str:
        """The codebase that it shows."""
        return self._info.codebase_id

    @property
    def info(self) -> SandboxInfo:
        """What the server last said of it."""
        return self._info

    @property
    def status(self) -> SandboxStatus:
        """Its state, as the server last said."""
        return self._info.status

    @property
    def runtime(self) -> RuntimeType:
        """How it is isolated."""
        return self._info.runtime

    @property
    def codebase(self) -> Optional[Codebase]:
        """Its codebase as it was when this was opened; None where the server would not tell."""
        return self._parts.codebase

    @property
    def client(self) -> SandboxClient:
        """Everything that can be called, for what is not here."""
        return self._client

    @property
    def files(self) -> SandboxFiles:
        """Its files as a process inside sees them."""
        return self._files

    @property
    def permissions(self) -> SandboxPermissions:
        """Its rules."""
        return self._permissions

    def refresh(self) -> Self:
        """Asks the server how it is; gives this object."""
        self._learn(self._client.get_sandbox(self.id))
        return self

    def run(
        self,
        command: Command,
        timeout: Optional[Seconds] = _RUN_TIMEOUT,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        raise_on_error: bool = False,
        *,
        check: bool = False,
        stdin: Union[str, bytes, None] = None,
        on_stdout: Optional[OutputCallback] = None,
        on_stderr: Optional[OutputCallback] = None,
    ) -> ExecResult:
        """Runs a command and waits for its end.

        A non-zero exit code and a timeout are results, unless `check` is given. Whoever is interrupted while he waits,
        by the cancellation of his task or a KeyboardInterrupt, ends the command.

        Args:
            command: A line for the shell, or a program and its arguments without a shell.
            timeout: Seconds; None is the server's.
            env: Variables for this command.
            workdir: Absolute, or relative to the workspace; default /workspace.
            raise_on_error: The same as `check`.
            check: Raise CommandExecutionError on a non-zero exit code, and CommandTimeoutError when the time was up.
            stdin: Its input; default: none.
            on_stdout: Sees output as it comes, decoded as UTF-8 across pieces.
            on_stderr: Sees complaints as they come.
        """
        if on_stdout is None and on_stderr is None:
            result = self._client.exec(self.id, command, stdin, env, workdir, timeout)
        else:
            with start_closed_command(
                self._client, self.id, command, stdin, env, workdir, timeout, on_stdout, on_stderr
            ) as execution:
                result = execution.wait()
        return result.raise_on_error() if check or raise_on_error else result

    def exec(
        self,
        command: Command,
        stdin: Union[str, bytes, None] = None,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        timeout: Optional[Seconds] = None,
        *,
        check: bool = False,
    ) -> ExecResult:
        """The same as `run`, in the order of the client's arguments and with the server's timeout, usually 30 s."""
        return self._client.exec(self.id, command, stdin, env, workdir, timeout, check=check)

    def exec_stream(
        self,
        command: Command,
        stdin: Union[str, bytes, None] = None,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        timeout: Optional[Seconds] = None,
        *,
        on_stdout: Optional[OutputCallback] = None,
        on_stderr: Optional[OutputCallback] = None,
    ) -> Execution:
        """Starts a command and gives a handle on it, to be looped over or waited for.

        Unless `stdin` is given, its input stays open for `send_stdin` until `end_stdin`. That it cannot be run shows in
        the handle.
        """
        if stdin is None:
            return start_command(self._client, self.id, command, env, workdir, timeout, on_stdout, on_stderr)
        return start_closed_command(self._client, self.id, command, stdin, env, workdir, timeout, on_stdout, on_stderr)

    @opening
    def session(
        self,
        shell: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        *,
        workdir: Optional[str] = None,
        idle_timeout: Optional[Seconds] = None,
    ) -> Session:
        """Opens a shell that keeps its state from one command to the next.

        Args:
            shell: Default: the sandbox's first one.
            env: Variables for all of its commands.
            workdir: Where it begins; default /workspace.
            idle_timeout: Seconds without a command after which the server closes it.
        """
        return self._client.create_session(self.id, shell, env, workdir=workdir, idle_timeout=idle_timeout)

    def run_code(
        self,
        code: str,
        *,
        language: Union[CodeLanguage, str, None] = None,
        context: Union[CodeContext, str, None] = None,
        on_stdout: Optional[OutputCallback] = None,
        on_stderr: Optional[OutputCallback] = None,
        on_result: Optional[Callable[[CodeResult], object]] = None,
        on_error: Optional[Callable[[CodeError], object]] = None,
        timeout: Optional[Seconds] = CODE_TIMEOUT,
        env: Optional[Mapping[str, str]] = None,
    ) -> CodeExecution:
        """Runs code in a context, which keeps its names for the next, and waits for its end.

        An error of the code is a result. Code that runs out of time is interrupted, and the names stay.

        Args:
            code: The code.
            language: Default: that of the context, or Python.
            context: Default: the language's own, which is made when it is first used.
            on_stdout: Sees output as it comes, decoded as UTF-8 across pieces.
            on_stderr: The same.
            on_result: Sees what the code shows, as it does.
            on_error: Sees its error.
            timeout: Seconds; None: never.
            env: Variables for this code alone.
        """
        return run_code(
            self._client,
            self.id,
            code,
            language=language,
            context=context,
            on_stdout=on_stdout,
            on_stderr=on_stderr,
            on_result=on_result,
            on_error=on_error,
            timeout=timeout,
            env=env,
        )

    @opening
    def create_code_context(
        self,
        language: Union[CodeLanguage, str, None] = None,
        *,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
    ) -> CodeContext:
        """Makes an interpreter that stays until it is removed or the sandbox is stopped.

        Args:
            language: Default: Python.
            env: Variables for all of its code.
            workdir: Where it begins; default: where commands run.
        """
        info = self._client.create_code_context(self.id, language, env=env, workdir=workdir)
        return CodeContext(self._client, info)

    def code_contexts(self) -> List[CodeContext]:
        """Tells which contexts there are."""
        return [CodeContext(self._client, info) for info in self._client.list_code_contexts(self.id)]

    def spawn(
        self,
        command: Command,
        *,
        tag: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        stdin: bool = False,
        terminal: Optional[Tuple[int, int]] = None,
        timeout: Optional[Seconds] = None,
    ) -> SandboxProcess:
        """Starts a process that lives until it ends, its timeout, or the sandbox's stop: without this call or object.

        Args:
            command: A line for the shell, or a program and its arguments.
            tag: Another name for it: a letter, then letters, digits, dots, underscores and hyphens.
            env: Variables, besides those of the sandbox.
            workdir: Absolute, or relative to the workspace; default /workspace.
            stdin: Whether it has an input. Otherwise it reads an end of file.
            terminal: Columns and rows of a terminal of its own, which has an input always.
            timeout: Seconds, after which it is killed with all that it started; default: never.
        """
        info = self._client.start_process(
            self.id, command, tag=tag, env=env, workdir=workdir, stdin=stdin, terminal=terminal, timeout=timeout
        )
        return SandboxProcess(self._client, info)

    def processes(self) -> List[SandboxProcess]:
        """Tells what runs in it, also commands, sessions and terminals; then spawned processes that ended lately."""
        return [SandboxProcess(self._client, info) for info in self._client.list_processes(self.id)]

    def process(self, which: Union[int, str]) -> SandboxProcess:
        """Finds one of them, by its number or its tag: the newest that has it, one that lives before one that ended."""
        fitting = [each for each in self.processes() if which != "" and which in (each.number, each.tag)]
        living = [each for each in fitting if each.info.state == "running"]
        if not fitting:
            raise ProcessError(f"there is no process {which!r} in the sandbox", code="PROCESS_NOT_FOUND")
        return (living or fitting)[-1]

    @opening
    def terminal(
        self,
        columns: int = 80,
        rows: int = 24,
        *,
        argv: Optional[Sequence[str]] = None,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
    ) -> Terminal:
        """Opens a terminal, in which the sandbox's first shell runs, or the program and arguments in `argv`."""
        connection = self._client.open_terminal(
            self.id, columns=columns, rows=rows, argv=argv, env=env, workdir=workdir
        )
        return Terminal(connection)

    def port(self, port: int, *, expires_in: Optional[Seconds] = None) -> SandboxPort:
        """A port of it: links that work without a key until they expire (an hour), and connections.

        Whether anything listens there is not asked.
        """
        return SandboxPort(self._client, self._client.get_port(self.id, port, expires_in=expires_in))

    def wait_for_port(self, port: int, *, timeout: Optional[Seconds] = None) -> None:
        """Returns when something in it accepts connections at the port; else PortClosedError, after 30 s by default."""
        self._client.wait_for_port(self.id, port, timeout=timeout)

    def changes(self, *, fold: bool = False) -> List[Change]:
        """Tells what it changed and has not been applied, in path order; with `fold`, for people."""
        return self._client.list_changes(self.id, fold=fold)

    def diff(self, paths: Optional[Sequence[str]] = None, *, patch: bool = False) -> List[FileDiff]:
        """Tells the same as unified diffs: of these paths with all below them, or of everything.

        With `patch` they are what `git diff --binary` prints, and all of them together what `git apply` reads.
        """
        return [diff for diff in self._client.diff_changes(self.id, paths, patch=patch)]

    def apply(
        self, paths: Optional[Sequence[str]] = None, *, dry_run: bool = False, hold_executables: bool = False
    ) -> ApplyResult:
        """Writes changes into the codebase, and after `from_local` into the directory, as far as the rules allow.

        In the directory of somebody who went on working, what is not as it was uploaded is left alone and told as a
        conflict.

        Args:
            paths: Each with all below it; default: everything.
            dry_run: Tells what would happen, and does nothing.
            hold_executables: Leaves what the host may run or trust without being asked to where it is.
        """
        result = self._client.apply_changes(self.id, paths, dry_run=dry_run, hold_executables=hold_executables)
        directory = self._parts.local_directory
        if directory is None:
            return result
        return directory.rehearse(result) if dry_run else directory.follow(result)

    def discard(self, paths: Optional[Sequence[str]] = None) -> List[Change]:
        """Undoes changes, of these paths with all below them or of everything, and tells which."""
        return self._client.discard_changes(self.id, paths)

    def snapshot(self, label: str = "") -> SnapshotInfo:
        """Keeps what it has now, changes and home, to go back to or begin from; nothing that runs notices.

        It stays when the sandbox is destroyed. Not for a sandbox that syncs after each command.
        """
        return self._client.snapshot_sandbox(self.id, label=label)

    def snapshots(self) -> List[SnapshotInfo]:
        """The oldest first."""
        return self._client.list_snapshots(sandbox_id=self.id)

    def restore(self, snapshot_id: str, *, processes: Literal["end", "refuse"] = "end") -> None:
        """Goes back to a snapshot. What it had since is gone, and so is what ran; it runs again if it did.

        With `refuse` it is an error that processes run.
        """
        self._learn(self._client.restore_sandbox(self.id, snapshot_id, processes=processes))

    def delete_snapshot(self, snapshot_id: str) -> None:
        """Sandboxes that were made of it stay as they are."""
        self._client.delete_snapshot(snapshot_id)

    def fork(
        self,
        *,
        count: int = 1,
        snapshot_id: Optional[str] = None,
        permissions: Optional[Sequence[RuleLike]] = None,
        labels: Optional[Mapping[str, str]] = None,
        expires_in: Optional[Seconds] = None,
        runtime: Union[RuntimeType, str, None] = None,
        image: Optional[str] = None,
        resources: Optional[ResourceLimits] = None,
        preset: Optional[str] = None,
        network: Union[NetworkMode, NetworkList, str, None] = None,
        sync: Union[SyncMode, str, None] = None,
        env: Optional[Mapping[str, str]] = None,
        revocable: bool = False,
        idle_pause: Optional[Seconds] = None,
        home: Union[str, os.PathLike[str], None] = None,
        secrets: Optional[SecretsLike] = None,
    ) -> List[Self]:
        """Sandboxes of what this one has now, or had at a snapshot, started; each goes its own way from there.

        What is not given is as in this one, but for labels, secrets, home and expiry. They use its connection, and the
        end of the `with` block of one destroys it.
        """
        made = self._client.fork_sandbox(
            self.id,
            count=count,
            snapshot_id=snapshot_id,
            permissions=permissions,
            labels=labels,
            expires_in=expires_in,
            runtime=runtime,
            image=image,
            resources=resources,
            preset=preset,
            network=network,
            sync=sync,
            env=env,
            revocable=revocable,
            idle_pause=idle_pause,
            home=home,
            secrets=secrets,
        )
        try:
            started = [self._client.start_sandbox(fork.id) for fork in made]
        except BaseException:
            for fork in made:
                with suppress(SandboxError):
                    self._client.destroy_sandbox(fork.id)
            raise
        connection = Connection(self._client)
        codebase = self._parts.codebase
        return [
            type(self)(SandboxParts(connection, info, codebase, is_own=True, owns_codebase=False)) for info in started
        ]

    def sync(self) -> ApplyResult:
        """Writes all changes into the codebase, and nowhere else."""
        return self._client.apply_changes(self.id)

    def events(
        self,
        *,
        types: Optional[Sequence[str]] = None,
        after_sequence: Optional[int] = None,
        follow: bool = True,
    ) -> Iterator[AuditEvent]:
        """Tells what happened so far, then what happens, until the sandbox is destroyed or this object is closed.

        After a lost connection it goes on where it was, without gaps or repeats.

        Args:
            types: Any of these; default: all.
            after_sequence: Only what came after the event with this sequence.
            follow: Go on with what happens.
        """
        after = after_sequence or 0
        if not follow:
            for event in past_events(self._client, self.id, types=types, after_sequence=after):
                yield event
            return
        watch = follow_events(self._client, self.id, types=types, after_sequence=after, is_over=lambda: self._closed)
        for event in watch:
            yield event

    def read_file(self, path: str) -> str:
        """Gives all of a file as text, as a process inside sees it: the rules apply."""
        return self._files.read_file(path, "utf-8")

    def read_file_bytes(self, path: str) -> bytes:
        """Gives all of a file, as a process inside sees it: the rules apply."""
        return self._files.read_file(path)

    def write_file(self, path: str, content: Content) -> None:
        """Writes a file, as far as the rules allow a process inside to do it."""
        self._files.write_file(path, content)

    def list_files(self, path: str = "", recursive: bool = False) -> List[str]:
        """The paths of what is in a directory, "src/a.py", as a process inside sees it: what is hidden is not there."""
        entries = self._client.list_directory(self.id, workspace_path(path), recursive=recursive)
        return ["/".join(names_in(entry.path)) for entry in entries]

    def update_permissions(
        self, permissions: Optional[Sequence[RuleLike]] = None, preset: Optional[str] = None
    ) -> List[PermissionRule]:
        """Puts new rules in the place of all there were, at once; gives those in force then."""
        return self._permissions.update(permissions, preset)

    def update_network(self, network: NetworkList) -> List[NetworkRule]:
        """Puts another list in the place of that of a filtered network, at once; gives the rules in force then.

        Connections that they do not allow are cut.
        """
        self._learn(self._client.update_network(self.id, network))
        return list(self._info.network_rules)

    def update_expiry(self, expires_in: Seconds, *, extend_only: bool = False) -> datetime:
        """Has it destroyed by itself after this time, in place of what was said before; gives when that is.

        With `extend_only` a later time stays as it is.
        """
        info = self._client.update_expiry(self.id, expires_in, extend_only=extend_only)
        self._learn(info)
        assert info.expires_at is not None
        return info.expires_at

    def explain(self, path: str) -> PathExplanation:
        """Tells which rule decides about a path, and which ones lost."""
        return self._permissions.explain(path)

    def start(self) -> Self:
        """Starts it, unless it runs."""
        self._learn(start_idempotently(self._client, self.id))
        return self

    def stop(self) -> Self:
        """Ends everything that runs in it, if it runs; what it changed stays."""
        try:
            self._learn(self._client.stop_sandbox(self.id))
        except SandboxNotRunningError:
            self.refresh()
        return self

    def pause(self) -> Self:
        """Holds all that runs in it still, as it is, until `resume`.

        Files, changes and rules answer meanwhile; a command is an error. The time limits of commands that run count on.
        """
        self._learn(self._client.pause_sandbox(self.id))
        return self

    def resume(self) -> Self:
        """Lets it go on, if it is paused."""
        self._learn(self._client.resume_sandbox(self.id))
        return self

    def destroy(self, delete_codebase: Optional[bool] = None) -> None:
        """Removes it with all that runs in it, with changes that were not applied, and with a codebase made for it.

        Args:
            delete_codebase: Default: whether this object made the codebase.
        """
        with suppress(SandboxNotFoundError):
            self._client.destroy_sandbox(self.id)
        self._learn(replace(self._info, status=SandboxStatus.STOPPED))
        if delete_codebase is True or (delete_codebase is None and self._parts.owns_codebase):
            self._delete_codebase(is_asked_for=delete_codebase is True)

    def close(self) -> None:
        """Lets go of the connection, and leaves the sandbox as it is."""
        self._closed = True
        self._parts.connection.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        """Destroys it if this object made it, and lets go of the connection."""
        try:
            if self._parts.is_own:
                self.destroy()
        except SandboxError:
            # What went wrong first is what has to be heard of.
            if error is None:
                raise
        finally:
            self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.status}>"

    def _delete_codebase(self, *, is_asked_for: bool) -> None:
        try:
            self._client.delete_codebase(self.codebase_id)
        except CodebaseNotFoundError:
            pass
        except SandboxError as error:
            # Made for this sandbox, but others found it useful: unless it was asked for, it is theirs now.
            if is_asked_for or error.code != "CODEBASE_IN_USE":
                raise

    def _learn(self, info: SandboxInfo) -> None:
        self._info = info
