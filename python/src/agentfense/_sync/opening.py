# Generated from src/agentfense/_async/opening.py by scripts/generate_sync.py: change it there.
"""How a sandbox comes to be."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Optional

from typing_extensions import Protocol

from agentfense._face.completion import Completion
from agentfense._sandbox.options import CodebaseOptions, SandboxOptions
from agentfense._sandbox.owner import user_name
from agentfense._sync.client import SandboxClient
from agentfense._sync.connection import Connection
from agentfense._sync.local_directory import LocalDirectory
from agentfense._sync.parts import SandboxParts
from agentfense._sync.undo import Undo
from agentfense.types import Codebase, SandboxInfo


@dataclass(frozen=True)
class Ground:
    """The codebase of a sandbox that is being opened."""

    codebase_id: str
    codebase_version: Optional[int] = None
    #: Instead of the codebase.
    snapshot_id: Optional[str] = None
    #: It was made for this sandbox.
    is_own: bool = False
    local_directory: Optional[LocalDirectory] = None


class LayGround(Protocol):
    """Gets the codebase ready, and adds what undoes that."""

    def __call__(self, client: SandboxClient, undo: Undo) -> Ground: ...


def build(
    undo: Undo,
    connection: Connection,
    lay_ground: LayGround,
    options: SandboxOptions,
    *,
    start: bool,
) -> SandboxParts:
    """Gets the codebase ready, makes the sandbox, starts it."""
    client = connection.client
    ground = lay_ground(client, undo)

    def make() -> SandboxInfo:
        created = _create(client, ground, options)
        undo.add(lambda: client.destroy_sandbox(created.id))
        return created

    info = Completion.of(make)
    if start:
        info = client.start_sandbox(info.id)
    return SandboxParts(
        connection,
        info,
        client.get_codebase(info.codebase_id),
        is_own=True,
        owns_codebase=ground.is_own,
        local_directory=ground.local_directory,
    )


def _create(client: SandboxClient, ground: Ground, options: SandboxOptions) -> SandboxInfo:
    own = {field.name: getattr(options, field.name) for field in fields(options)}
    if ground.snapshot_id is not None:
        return client.create_from_snapshot(ground.snapshot_id, **own)
    return client.create_sandbox(ground.codebase_id, codebase_version=ground.codebase_version, **own)


def own_codebase(client: SandboxClient, undo: Undo, name: str, owner_id: Optional[str]) -> str:
    """Makes a codebase for one sandbox alone, still empty; gives its id."""
    owner = owner_id if owner_id is not None else _default_owner(client)

    def make() -> Codebase:
        codebase = client.create_codebase(name, owner)
        # Forced: what is being undone may have become a sandbox that nobody heard of.
        undo.add(lambda: client.delete_codebase(codebase.id, force=True))
        return codebase

    return Completion.of(make).id


def _default_owner(client: SandboxClient) -> Optional[str]:
    """Somebody has to be named where no key says who it is."""
    info = client.get_server_info()
    return user_name() if info.owner_id == "" else None


def codebase_ground(codebase_id: str, codebase_version: Optional[int] = None) -> LayGround:
    """A codebase that is there, and stays."""

    def lay(client: SandboxClient, undo: Undo) -> Ground:
        return Ground(codebase_id, codebase_version)

    return lay


def empty_ground(options: CodebaseOptions) -> LayGround:
    """An empty codebase, which goes with the sandbox."""

    def lay(client: SandboxClient, undo: Undo) -> Ground:
        codebase_id = own_codebase(client, undo, "sandbox" if options.name is None else options.name, options.owner_id)
        return Ground(codebase_id, is_own=True)

    return lay


def snapshot_ground(snapshot_id: str) -> LayGround:
    """A snapshot, and the codebase that it is on."""

    def lay(client: SandboxClient, undo: Undo) -> Ground:
        return Ground("", snapshot_id=snapshot_id)

    return lay
