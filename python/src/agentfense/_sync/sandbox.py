# Generated from src/agentfense/_async/sandbox.py by scripts/generate_sync.py: change it there.
"""A guarded environment for an agent's commands."""

from __future__ import annotations

import os
from typing import Callable, List, Mapping, Optional, Sequence, Union

from agentfense._face.sync_face import opening, run_blocking
from agentfense._sandbox.options import CodebaseOptions, SandboxOptions, ServerOptions, UploadOptions
from agentfense._sandbox.project import read_project
from agentfense._sync.client import SandboxClient
from agentfense._sync.connection import connect
from agentfense._sync.open_sandbox import OpenSandbox
from agentfense._sync.opening import LayGround, build, codebase_ground, empty_ground, snapshot_ground
from agentfense._sync.opening_by_key import open_by_key
from agentfense._sync.opening_existing import open_existing
from agentfense._sync.opening_local import directory_ground
from agentfense._sync.undo import Undo
from agentfense.exceptions import InvalidConfigurationError
from agentfense.types import (
    NetworkList,
    NetworkMode,
    ResourceLimits,
    RuleLike,
    RuntimeType,
    SandboxInfo,
    SandboxStatus,
    Seconds,
    SecretsLike,
    SyncMode,
    TlsOptions,
    UploadProgress,
)


class Sandbox(OpenSandbox):
    """A guarded environment for an agent's commands, on a codebase of which it sees what the rules show.

    The class methods make one. The end of its `with` block destroys it if this object made it, and else only lets go.

    Which rules it gets:

    ======  ===========  ====================================
    preset  permissions  the rules
    ======  ===========  ====================================
    absent  absent       those of the preset agent-safe
    given   absent       the preset's
    absent  given        exactly these; none at all hides all
    given   given        the preset's, then these
    ======  ===========  ====================================
    """

    @classmethod
    @opening
    def from_local(
        cls,
        path: Union[str, os.PathLike[str]],
        preset: Optional[str] = None,
        permissions: Optional[Sequence[RuleLike]] = None,
        runtime: Union[RuntimeType, str, None] = None,
        image: Optional[str] = None,
        resources: Optional[ResourceLimits] = None,
        endpoint: Optional[str] = None,
        secure: Optional[bool] = None,
        owner_id: Optional[str] = None,
        codebase_name: Optional[str] = None,
        ignore_patterns: Optional[Sequence[str]] = None,
        labels: Optional[Mapping[str, str]] = None,
        auto_start: bool = True,
        *,
        network: Union[NetworkMode, NetworkList, str, None] = None,
        sync: Union[SyncMode, str, None] = None,
        env: Optional[Mapping[str, str]] = None,
        expires_in: Optional[Seconds] = None,
        revocable: bool = False,
        idle_pause: Optional[Seconds] = None,
        home: Union[str, os.PathLike[str], None] = None,
        secrets: Optional[SecretsLike] = None,
        api_key: Optional[str] = None,
        tls: Optional[TlsOptions] = None,
        client: Optional[SandboxClient] = None,
        request_timeout: Optional[Seconds] = 60.0,
        retries: int = 3,
        ignore_files: bool = True,
        include_git: bool = False,
        skip_unreadable: bool = False,
        on_progress: Optional[Callable[[UploadProgress], None]] = None,
        policy: bool = True,
    ) -> Sandbox:
        """A sandbox on a directory of this machine. Nothing is written there unless `apply` is called.

        It is uploaded; when anything fails, nothing of it is left on the server. Where no server is named, one is
        started for this process.

        Args:
            path: The directory.
            preset: The name of a preset.
            permissions: Rules, as PermissionRule or dict.
            runtime: How it is isolated; default: as the server does.
            image: For docker.
            resources: Limits; default: the server's.
            endpoint: "host:port", "http://…", "https://…" or "unix:/path"; default: AGENTFENSE_ENDPOINT,
                else a server of this process alone.
            secure: Whether to use TLS, where the endpoint does not say so.
            owner_id: Of the codebase that is made; default: the owner of the API key, else the user of this process.
            codebase_name: Default: the name of the directory.
            ignore_patterns: What stays behind besides, in the words of .gitignore.
            labels: To find it again by.
            auto_start: Whether to start it.
            network: What of the network it reaches; default none. A list means filtered.
            sync: When changes reach the codebase; default manual.
            env: For every command.
            expires_in: Seconds after which the server destroys it.
            revocable: Rule changes reach files that are open already.
            idle_pause: Seconds without a call after which it pauses, until the next command; 0: never. Default: the
                server's, usually never.
            home: A home that outlives the sandbox, for one sandbox at a time: on a server a name, else a directory
                ("./home", made if absent). Default: one of its own, which goes with it.
            secrets: What it may use and never has: by name, with their values or as "kept" for one that the server
                keeps; or the names of such. Means a filtered network, with their hosts on its list.
            api_key: Default: AGENTFENSE_API_KEY.
            tls: Certificates.
            client: To use instead of a connection of its own; stays open, whatever becomes of the sandbox.
            request_timeout: Seconds for every call that is not a stream and does not run a command.
            retries: How often an idempotent call is tried again when the server cannot be reached or is busy.
            ignore_files: Heed .gitignore and .agentfenseignore.
            include_git: Upload .git, too.
            skip_unreadable: Leave out what cannot be read instead of failing.
            on_progress: Told how far the upload is.
            policy: Whether what .agentfense.yaml in the directory says counts.
        """
        server = ServerOptions(endpoint, secure, api_key, tls, request_timeout, retries)
        given = SandboxOptions(
            preset,
            permissions,
            runtime,
            image,
            resources,
            network,
            sync,
            env,
            labels,
            expires_in,
            revocable,
            idle_pause,
            home,
            secrets,
        )
        upload = UploadOptions(ignore_files, ignore_patterns or (), include_git, skip_unreadable, on_progress, policy)
        project = run_blocking(read_project, path, given, upload)
        ground = directory_ground(project, CodebaseOptions(codebase_name, owner_id), upload)
        return cls._open(server, client, ground, project.options, auto_start, may_be_private=True)

    @classmethod
    @opening
    def from_codebase(
        cls,
        codebase_id: str,
        preset: Optional[str] = None,
        permissions: Optional[Sequence[RuleLike]] = None,
        runtime: Union[RuntimeType, str, None] = None,
        image: Optional[str] = None,
        resources: Optional[ResourceLimits] = None,
        endpoint: Optional[str] = None,
        secure: Optional[bool] = None,
        labels: Optional[Mapping[str, str]] = None,
        auto_start: bool = True,
        *,
        codebase_version: Optional[int] = None,
        network: Union[NetworkMode, NetworkList, str, None] = None,
        sync: Union[SyncMode, str, None] = None,
        env: Optional[Mapping[str, str]] = None,
        expires_in: Optional[Seconds] = None,
        revocable: bool = False,
        idle_pause: Optional[Seconds] = None,
        home: Union[str, os.PathLike[str], None] = None,
        secrets: Optional[SecretsLike] = None,
        api_key: Optional[str] = None,
        tls: Optional[TlsOptions] = None,
        client: Optional[SandboxClient] = None,
        request_timeout: Optional[Seconds] = 60.0,
        retries: int = 3,
    ) -> Sandbox:
        """Opens a sandbox on a codebase that is there, and stays.

        Args:
            codebase_id: The codebase.
            codebase_version: Pins it to a version; default: the newest, and it follows.

        The others are those of `from_local`.
        """
        server = ServerOptions(endpoint, secure, api_key, tls, request_timeout, retries)
        options = SandboxOptions(
            preset,
            permissions,
            runtime,
            image,
            resources,
            network,
            sync,
            env,
            labels,
            expires_in,
            revocable,
            idle_pause,
            home,
            secrets,
        )
        return cls._open(server, client, codebase_ground(codebase_id, codebase_version), options, auto_start)

    @classmethod
    @opening
    def from_snapshot(
        cls,
        snapshot_id: str,
        preset: Optional[str] = None,
        permissions: Optional[Sequence[RuleLike]] = None,
        runtime: Union[RuntimeType, str, None] = None,
        image: Optional[str] = None,
        resources: Optional[ResourceLimits] = None,
        endpoint: Optional[str] = None,
        secure: Optional[bool] = None,
        labels: Optional[Mapping[str, str]] = None,
        auto_start: bool = True,
        *,
        network: Union[NetworkMode, NetworkList, str, None] = None,
        sync: Union[SyncMode, str, None] = None,
        env: Optional[Mapping[str, str]] = None,
        expires_in: Optional[Seconds] = None,
        revocable: bool = False,
        idle_pause: Optional[Seconds] = None,
        home: Union[str, os.PathLike[str], None] = None,
        secrets: Optional[SecretsLike] = None,
        api_key: Optional[str] = None,
        tls: Optional[TlsOptions] = None,
        client: Optional[SandboxClient] = None,
        request_timeout: Optional[Seconds] = 60.0,
        retries: int = 3,
    ) -> Sandbox:
        """Opens a sandbox that begins from a snapshot.

        Args:
            snapshot_id: The snapshot.

        The others are those of `from_local`; what is not given is as in the sandbox that the snapshot is of, but for
        labels, secrets, home and expiry.
        """
        server = ServerOptions(endpoint, secure, api_key, tls, request_timeout, retries)
        options = SandboxOptions(
            preset,
            permissions,
            runtime,
            image,
            resources,
            network,
            sync,
            env,
            labels,
            expires_in,
            revocable,
            idle_pause,
            home,
            secrets,
        )
        return cls._open(server, client, snapshot_ground(snapshot_id), options, auto_start)

    @classmethod
    @opening
    def create(
        cls,
        codebase_id: Optional[str] = None,
        preset: Optional[str] = None,
        permissions: Optional[Sequence[RuleLike]] = None,
        runtime: Union[RuntimeType, str, None] = None,
        image: Optional[str] = None,
        resources: Optional[ResourceLimits] = None,
        endpoint: Optional[str] = None,
        secure: Optional[bool] = None,
        owner_id: Optional[str] = None,
        codebase_name: Optional[str] = None,
        labels: Optional[Mapping[str, str]] = None,
        auto_start: bool = True,
        *,
        network: Union[NetworkMode, NetworkList, str, None] = None,
        sync: Union[SyncMode, str, None] = None,
        env: Optional[Mapping[str, str]] = None,
        expires_in: Optional[Seconds] = None,
        revocable: bool = False,
        idle_pause: Optional[Seconds] = None,
        home: Union[str, os.PathLike[str], None] = None,
        secrets: Optional[SecretsLike] = None,
        api_key: Optional[str] = None,
        tls: Optional[TlsOptions] = None,
        client: Optional[SandboxClient] = None,
        request_timeout: Optional[Seconds] = 60.0,
        retries: int = 3,
    ) -> Sandbox:
        """Opens a sandbox on a codebase that is there, or else on an empty one of its own, which goes with it.

        The arguments are those of `from_local`.
        """
        server = ServerOptions(endpoint, secure, api_key, tls, request_timeout, retries)
        options = SandboxOptions(
            preset,
            permissions,
            runtime,
            image,
            resources,
            network,
            sync,
            env,
            labels,
            expires_in,
            revocable,
            idle_pause,
            home,
            secrets,
        )
        is_new = codebase_id is None
        ground = (
            empty_ground(CodebaseOptions(codebase_name, owner_id))
            if codebase_id is None
            else codebase_ground(codebase_id)
        )
        return cls._open(server, client, ground, options, auto_start, may_be_private=is_new)

    @classmethod
    @opening
    def connect(
        cls,
        sandbox_id: str,
        endpoint: Optional[str] = None,
        secure: Optional[bool] = None,
        *,
        api_key: Optional[str] = None,
        tls: Optional[TlsOptions] = None,
        client: Optional[SandboxClient] = None,
        request_timeout: Optional[Seconds] = 60.0,
        retries: int = 3,
    ) -> Sandbox:
        """Takes hold of a sandbox that is there. The end of its `with` block leaves it alone."""
        server = ServerOptions(endpoint, secure, api_key, tls, request_timeout, retries)
        return cls(open_existing(sandbox_id, server, client))

    @classmethod
    @opening
    def get_or_create(
        cls,
        key: str,
        *,
        path: Union[str, os.PathLike[str], None] = None,
        codebase_id: Optional[str] = None,
        preset: Optional[str] = None,
        permissions: Optional[Sequence[RuleLike]] = None,
        runtime: Union[RuntimeType, str, None] = None,
        image: Optional[str] = None,
        resources: Optional[ResourceLimits] = None,
        endpoint: Optional[str] = None,
        secure: Optional[bool] = None,
        owner_id: Optional[str] = None,
        codebase_name: Optional[str] = None,
        ignore_patterns: Optional[Sequence[str]] = None,
        labels: Optional[Mapping[str, str]] = None,
        network: Union[NetworkMode, NetworkList, str, None] = None,
        sync: Union[SyncMode, str, None] = None,
        env: Optional[Mapping[str, str]] = None,
        expires_in: Optional[Seconds] = None,
        revocable: bool = False,
        idle_pause: Optional[Seconds] = None,
        home: Union[str, os.PathLike[str], None] = None,
        secrets: Optional[SecretsLike] = None,
        api_key: Optional[str] = None,
        tls: Optional[TlsOptions] = None,
        client: Optional[SandboxClient] = None,
        request_timeout: Optional[Seconds] = 60.0,
        retries: int = 3,
        ignore_files: bool = True,
        include_git: bool = False,
        skip_unreadable: bool = False,
        on_progress: Optional[Callable[[UploadProgress], None]] = None,
        policy: bool = True,
    ) -> Sandbox:
        """Gives the sandbox of this key, started; made if there is none. The end of its `with` block leaves it alone.

        Only the object that made it from a directory has `apply` write there: others know nothing of what was uploaded.
        Callers that race end with the same one.

        Args:
            key: The name to find it again by.
            path: A directory to make it of.
            codebase_id: A codebase to make it of. Without either it gets an empty one.

        The others are those of `from_local`.
        """
        server = ServerOptions(endpoint, secure, api_key, tls, request_timeout, retries)
        options = SandboxOptions(
            preset,
            permissions,
            runtime,
            image,
            resources,
            network,
            sync,
            env,
            labels,
            expires_in,
            revocable,
            idle_pause,
            home,
            secrets,
        )
        codebase = CodebaseOptions(codebase_name, owner_id)
        if path is not None and codebase_id is not None:
            raise InvalidConfigurationError("a directory and a codebase are two different things to start from")
        if path is not None:
            upload = UploadOptions(
                ignore_files, ignore_patterns or (), include_git, skip_unreadable, on_progress, policy
            )
            project = run_blocking(read_project, path, options, upload)
            options, ground = project.options, directory_ground(project, codebase, upload)
        else:
            ground = empty_ground(codebase) if codebase_id is None else codebase_ground(codebase_id)
        return cls(open_by_key(key, ground, options, server, client))

    @classmethod
    def list(
        cls,
        codebase_id: Optional[str] = None,
        endpoint: Optional[str] = None,
        secure: Optional[bool] = None,
        *,
        owner_id: Optional[str] = None,
        status: Union[SandboxStatus, str, None] = None,
        labels: Optional[Mapping[str, str]] = None,
        api_key: Optional[str] = None,
        tls: Optional[TlsOptions] = None,
        client: Optional[SandboxClient] = None,
        request_timeout: Optional[Seconds] = 60.0,
        retries: int = 3,
    ) -> List[SandboxInfo]:
        """Gives those that the caller may see: of a codebase, of an owner, in a state, with all of these labels."""
        server = ServerOptions(endpoint, secure, api_key, tls, request_timeout, retries)
        connection = connect(Undo(), server, client)
        try:
            return connection.client.list_sandboxes(codebase_id, owner_id=owner_id, status=status, labels=labels)
        finally:
            connection.release()

    @classmethod
    def _open(
        cls,
        server: ServerOptions,
        client: Optional[SandboxClient],
        lay_ground: LayGround,
        options: SandboxOptions,
        start: bool,
        *,
        may_be_private: bool = False,
    ) -> Sandbox:
        """Connects, gets the codebase ready, makes the sandbox, starts it. When anything fails, nothing is left."""
        with Undo() as undo:
            connection = connect(undo, server, client, may_be_private=may_be_private)
            return cls(build(undo, connection, lay_ground, options, start=start))
