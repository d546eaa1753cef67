# Generated from src/agentfense/_async/client_sandboxes.py by scripts/generate_sync.py: change it there.
"""Sandboxes and their rules."""

from __future__ import annotations

import os
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from typing_extensions import Literal

from agentfense._connection.method import SandboxService
from agentfense._face.sync_face import run_blocking
from agentfense._messages.network import network_presets, network_rule_messages
from agentfense._messages.numbers import strings
from agentfense._messages.rules import rule_messages
from agentfense._messages.sandbox import (
    create_sandbox_message,
    explanation_of,
    inheriting_message,
    sandbox_of,
    snapshot_of,
)
from agentfense._messages.secrets import read_secret, secret_of
from agentfense._messages.time import duration_message
from agentfense._messages.words import SANDBOX_STATUSES
from agentfense._sandbox.options import SandboxOptions
from agentfense._sync.client_base import ClientPart, all_pages
from agentfense._wire.sandbox.v1 import sandbox_pb2
from agentfense.types import (
    HomeInfo,
    NetworkList,
    NetworkMode,
    PathExplanation,
    ResourceLimits,
    RuleLike,
    RuntimeType,
    SandboxInfo,
    SandboxStatus,
    Seconds,
    SecretInfo,
    SecretsLike,
    SnapshotInfo,
    SyncMode,
)


class SandboxMethods(ClientPart):
    """The life of a sandbox."""

    def create_sandbox(
        self,
        codebase_id: str,
        permissions: Optional[Iterable[RuleLike]] = None,
        labels: Optional[Mapping[str, str]] = None,
        expires_in: Optional[Seconds] = None,
        runtime: Union[RuntimeType, str, None] = None,
        image: Optional[str] = None,
        resources: Optional[ResourceLimits] = None,
        *,
        preset: Optional[str] = None,
        network: Union[NetworkMode, NetworkList, str, None] = None,
        sync: Union[SyncMode, str, None] = None,
        env: Optional[Mapping[str, str]] = None,
        codebase_version: Optional[int] = None,
        revocable: bool = False,
        idle_pause: Optional[Seconds] = None,
        home: Union[str, os.PathLike[str], None] = None,
        secrets: Optional[SecretsLike] = None,
        workspace_home: Optional[str] = None,
        pause_at_expiry: bool = False,
    ) -> SandboxInfo:
        """Makes a sandbox, which is not started.

        Args:
            codebase_id: What it is made of.
            permissions: Rules; without these and without a preset, those of the preset agent-safe.
            labels: To find it by.
            expires_in: Seconds until it is destroyed; default: the server's.
            runtime: How it is isolated; default: the server's.
            image: For docker.
            resources: Limits.
            preset: Rules that go by a name, before `permissions`. Presets are those of this process.
            network: What it reaches; default none. A list means filtered.
            sync: When changes reach the codebase; default: the server's.
            env: For every command.
            codebase_version: Pins it to a version; default: the newest, and it follows.
            revocable: Rule changes reach files that are open already.
            idle_pause: Seconds without a call after which it pauses, until the next command; 0: never. Default: the
                server's, usually never.
            home: The name of a home that outlives it; default: one of its own.
            secrets: What it may use and never has: by name, with their values or as "kept" for one that the server
                keeps; or the names of such. Means a filtered network, with their hosts on its list.
            workspace_home: Shows the workspace at "/home/NAME" too: the home of its commands, and where they run.
                Default: a home apart from it.
            pause_at_expiry: Pauses it at its expiry, where it runs then, and keeps it. Default: it is destroyed.
        """
        request = run_blocking(
            create_sandbox_message,
            codebase_id,
            permissions,
            labels,
            expires_in,
            runtime,
            image,
            resources,
            preset=preset,
            network=network,
            sync=sync,
            env=env,
            codebase_version=codebase_version,
            revocable=revocable,
            idle_pause=idle_pause,
            home=home,
            secrets=secrets,
            workspace_home=workspace_home,
            pause_at_expiry=pause_at_expiry,
        )
        return sandbox_of(self._calls.unary(SandboxService.create_sandbox, request))

    def get_sandbox(self, sandbox_id: str) -> SandboxInfo:
        """One sandbox."""
        request = sandbox_pb2.GetSandboxRequest(sandbox_id=sandbox_id)
        return sandbox_of(self._calls.unary(SandboxService.get_sandbox, request))

    def list_sandboxes(
        self,
        codebase_id: Optional[str] = None,
        *,
        owner_id: Optional[str] = None,
        status: Union[SandboxStatus, str, None] = None,
        labels: Optional[Mapping[str, str]] = None,
    ) -> List[SandboxInfo]:
        """Those that the caller may see; with labels, those that have all of these."""

        def fetch(token: str) -> Tuple[Iterable[SandboxInfo], str]:
            request = sandbox_pb2.ListSandboxesRequest(
                codebase_id=codebase_id or "",
                owner_id=owner_id or "",
                status=SANDBOX_STATUSES.number(status),
                labels=strings(labels, "labels"),
                page_token=token,
            )
            page = self._calls.unary(SandboxService.list_sandboxes, request)
            return map(sandbox_of, page.sandboxes), page.next_page_token

        return all_pages(fetch)

    def start_sandbox(self, sandbox_id: str) -> SandboxInfo:
        """Starts it."""
        request = sandbox_pb2.StartSandboxRequest(sandbox_id=sandbox_id)
        return sandbox_of(self._calls.unary(SandboxService.start_sandbox, request))

    def stop_sandbox(self, sandbox_id: str) -> SandboxInfo:
        """Ends everything that runs in it; what it changed stays."""
        request = sandbox_pb2.StopSandboxRequest(sandbox_id=sandbox_id)
        return sandbox_of(self._calls.unary(SandboxService.stop_sandbox, request))

    def pause_sandbox(self, sandbox_id: str) -> SandboxInfo:
        """Holds all that runs in it still, until it is resumed; its files and changes can be looked at meanwhile."""
        request = sandbox_pb2.PauseSandboxRequest(sandbox_id=sandbox_id)
        return sandbox_of(self._calls.unary(SandboxService.pause_sandbox, request))

    def resume_sandbox(self, sandbox_id: str) -> SandboxInfo:
        """Lets a paused one go on."""
        request = sandbox_pb2.ResumeSandboxRequest(sandbox_id=sandbox_id)
        return sandbox_of(self._calls.unary(SandboxService.resume_sandbox, request))

    def destroy_sandbox(self, sandbox_id: str) -> None:
        """Removes it with everything that runs in it and with changes that were not applied."""
        request = sandbox_pb2.DestroySandboxRequest(sandbox_id=sandbox_id)
        self._calls.unary(SandboxService.destroy_sandbox, request)

    def create_from_snapshot(
        self,
        snapshot_id: str,
        *,
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
    ) -> SandboxInfo:
        """Makes a sandbox that begins from a snapshot, and is not started.

        What is not given is as in the sandbox that the snapshot is of, but for labels, secrets, home and expiry.
        """
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
        request = run_blocking(inheriting_message, options)
        request.snapshot_id = snapshot_id
        return sandbox_of(self._calls.unary(SandboxService.create_sandbox, request))

    def snapshot_sandbox(self, sandbox_id: str, *, label: str = "") -> SnapshotInfo:
        """Keeps what the sandbox has now, its own home included; nothing in it notices."""
        request = sandbox_pb2.SnapshotSandboxRequest(sandbox_id=sandbox_id, label=label)
        return snapshot_of(self._calls.unary(SandboxService.snapshot_sandbox, request))

    def list_snapshots(self, *, sandbox_id: Optional[str] = None, owner_id: Optional[str] = None) -> List[SnapshotInfo]:
        """The oldest first: of one sandbox, or of all, those that are gone included."""
        request = sandbox_pb2.ListSnapshotsRequest(sandbox_id=sandbox_id or "", owner_id=owner_id or "")
        answer = self._calls.unary(SandboxService.list_snapshots, request)
        return [snapshot_of(snapshot) for snapshot in answer.snapshots]

    def restore_sandbox(
        self, sandbox_id: str, snapshot_id: str, *, processes: Literal["end", "refuse"] = "end"
    ) -> SandboxInfo:
        """Brings it back to what it had at a snapshot; if it ran, it runs again.

        Its processes are ended; with `refuse` it is an error that there are any.
        """
        request = sandbox_pb2.RestoreSandboxRequest(
            sandbox_id=sandbox_id, snapshot_id=snapshot_id, only_idle=processes == "refuse"
        )
        return sandbox_of(self._calls.unary(SandboxService.restore_sandbox, request))

    def delete_snapshot(self, snapshot_id: str) -> None:
        """Sandboxes that were made of it stay as they are."""
        request = sandbox_pb2.DeleteSnapshotRequest(snapshot_id=snapshot_id)
        self._calls.unary(SandboxService.delete_snapshot, request)

    def fork_sandbox(
        self,
        sandbox_id: str,
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
    ) -> List[SandboxInfo]:
        """Makes sandboxes of what this one has, all of them or none. They are not started.

        Args:
            sandbox_id: The sandbox.
            count: How many.
            snapshot_id: A snapshot of the sandbox; default: what it has now.

        The others are those of `create_sandbox`; what is not given is as in the sandbox, but for labels, secrets, home
        and expiry.
        """
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
        request = sandbox_pb2.ForkSandboxRequest(
            sandbox_id=sandbox_id,
            snapshot_id=snapshot_id or "",
            count=count,
            settings=run_blocking(inheriting_message, options),
        )
        answer = self._calls.unary(SandboxService.fork_sandbox, request)
        return [sandbox_of(sandbox) for sandbox in answer.sandboxes]

    def list_homes(self, *, owner_id: Optional[str] = None) -> List[HomeInfo]:
        """Homes that outlive sandboxes; for administrators those of one owner, or of all."""
        request = sandbox_pb2.ListHomesRequest(owner_id=owner_id or "")
        answer = self._calls.unary(SandboxService.list_homes, request)
        return [HomeInfo(home.name, home.owner_id, home.sandbox_id) for home in answer.homes]

    def delete_home(self, name: str, *, owner_id: Optional[str] = None) -> None:
        """Removes one with all that is in it; refused while a sandbox runs with it."""
        request = sandbox_pb2.DeleteHomeRequest(name=name, owner_id=owner_id or "")
        self._calls.unary(SandboxService.delete_home, request)

    def put_secret(
        self,
        name: str,
        *,
        hosts: Sequence[str],
        place: str,
        value: Optional[str] = None,
        from_env: Optional[str] = None,
        file: Optional[str] = None,
        command: Optional[str] = None,
        owner_id: Optional[str] = None,
    ) -> SecretInfo:
        """Keeps a secret on the server for sandboxes that name it, in place of one of that name.

        No call gives its value back. Sandboxes that run send it from now on if it is as long as the one before and for
        the same hosts, otherwise from their next start on.

        Args:
            name: Of the variable that holds a placeholder in sandboxes.
            hosts: Towards these alone it is sent.
            place: Where in a request: "header NAME", "bearer", "basic", "query KEY" or "body".
            value: The value, or one of the next three.
            from_env: A variable of this process.
            file: A file, without its last line end.
            command: A line for the shell that prints it.
            owner_id: For administrators: whose.
        """
        sources = {"value": value, "from_env": from_env, "file": file, "command": command}
        given = {source: text for source, text in sources.items() if text is not None}
        secret: Any = {**given, "hosts": hosts, "in": place}
        read = run_blocking(read_secret, name, secret)
        request = sandbox_pb2.PutSecretRequest(
            name=name, value=read.value, hosts=read.hosts, place=read.place, owner_id=owner_id or ""
        )
        return secret_of(self._calls.unary(SandboxService.put_secret, request))

    def list_secrets(self, *, owner_id: Optional[str] = None) -> List[SecretInfo]:
        """Names, hosts, places and times of the secrets that the server keeps."""
        request = sandbox_pb2.ListSecretsRequest(owner_id=owner_id or "")
        answer = self._calls.unary(SandboxService.list_secrets, request)
        return [secret_of(secret) for secret in answer.secrets]

    def delete_secret(self, name: str, *, owner_id: Optional[str] = None) -> None:
        """In force at once, for sandboxes that run too."""
        request = sandbox_pb2.DeleteSecretRequest(name=name, owner_id=owner_id or "")
        self._calls.unary(SandboxService.delete_secret, request)

    def update_permissions(
        self,
        sandbox_id: str,
        permissions: Optional[Iterable[RuleLike]] = None,
        preset: Optional[str] = None,
    ) -> SandboxInfo:
        """New rules, at once, also for a running sandbox. Neither given, they are those of the preset agent-safe."""
        request = sandbox_pb2.UpdatePermissionsRequest(
            sandbox_id=sandbox_id, permissions=rule_messages(preset, permissions)
        )
        return sandbox_of(self._calls.unary(SandboxService.update_permissions, request))

    def update_network(self, sandbox_id: str, network: NetworkList) -> SandboxInfo:
        """Another list for a filtered network, at once: connections that it does not allow are cut."""
        request = sandbox_pb2.UpdateNetworkRequest(
            sandbox_id=sandbox_id,
            network_rules=network_rule_messages(network),
            network_presets=network_presets(network),
        )
        return sandbox_of(self._calls.unary(SandboxService.update_network, request))

    def update_expiry(self, sandbox_id: str, expires_in: Seconds, *, extend_only: bool = False) -> SandboxInfo:
        """Has it destroyed by itself after this time, in place of what was said before; also when it does not run.

        With `extend_only` a later time stays as it is.
        """
        request = sandbox_pb2.UpdateExpiryRequest(
            sandbox_id=sandbox_id,
            expires_in=duration_message(expires_in, "expires_in"),
            extend_only=extend_only,
        )
        return sandbox_of(self._calls.unary(SandboxService.update_expiry, request))

    def explain_path(self, sandbox_id: str, path: str) -> PathExplanation:
        """Which rule decides about a path, and which ones lost."""
        request = sandbox_pb2.ExplainPathRequest(sandbox_id=sandbox_id, path=path)
        return explanation_of(self._calls.unary(SandboxService.explain_path, request))
