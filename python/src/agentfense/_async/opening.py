"""How a sandbox comes to be."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Optional

from typing_extensions import Protocol

from agentfense._async.client import AsyncSandboxClient
from agentfense._async.connection import AsyncConnection
from agentfense._async.local_directory import AsyncLocalDirectory
from agentfense._async.parts import AsyncSandboxParts
from agentfense._async.undo import AsyncUndo
from agentfense._face.completion import AsyncCompletion
from agentfense._sandbox.options import CodebaseOptions, SandboxOptions
from agentfense._sandbox.owner import user_name
from agentfense.types import Codebase, SandboxInfo


@dataclass(frozen=True)
class AsyncGround:
    """The codebase of a sandbox that is being opened."""

    codebase_id: str
    codebase_version: Optional[int] = None
    #: Instead of the codebase.
    snapshot_id: Optional[str] = None
    #: It was made for this sandbox.
    is_own: bool = False
    local_directory: Optional[AsyncLocalDirectory] = None


class AsyncLayGround(Protocol):
    """Gets the codebase ready, and adds what undoes that."""

    async def __call__(self, client: AsyncSandboxClient, undo: AsyncUndo) -> AsyncGround: ...


async def build(
    undo: AsyncUndo,
    connection: AsyncConnection,
    lay_ground: AsyncLayGround,
    options: SandboxOptions,
    *,
    start: bool,
) -> AsyncSandboxParts:
    """Gets the codebase ready, makes the sandbox, starts it."""
    client = connection.client
    ground = await lay_ground(client, undo)

    async def make() -> SandboxInfo:
        created = await _create(client, ground, options)
        undo.add(lambda: client.destroy_sandbox(created.id))
        return created

    info = await AsyncCompletion.of(make)
    if start:
        info = await client.start_sandbox(info.id)
    return AsyncSandboxParts(
        connection,
        info,
        await client.get_codebase(info.codebase_id),
        is_own=True,
        owns_codebase=ground.is_own,
        local_directory=ground.local_directory,
    )


async def _create(client: AsyncSandboxClient, ground: AsyncGround, options: SandboxOptions) -> SandboxInfo:
    own = {field.name: getattr(options, field.name) for field in fields(options)}
    if ground.snapshot_id is not None:
        return await client.create_from_snapshot(ground.snapshot_id, **own)
    return await client.create_sandbox(ground.codebase_id, codebase_version=ground.codebase_version, **own)


async def own_codebase(client: AsyncSandboxClient, undo: AsyncUndo, name: str, owner_id: Optional[str]) -> str:
    """Makes a codebase for one sandbox alone, still empty; gives its id."""
    owner = owner_id if owner_id is not None else await _default_owner(client)

    async def make() -> Codebase:
        codebase = await client.create_codebase(name, owner)
        # Forced: what is being undone may have become a sandbox that nobody heard of.
        undo.add(lambda: client.delete_codebase(codebase.id, force=True))
        return codebase

    return (await AsyncCompletion.of(make)).id


async def _default_owner(client: AsyncSandboxClient) -> Optional[str]:
    """Somebody has to be named where no key says who it is."""
    info = await client.get_server_info()
    return user_name() if info.owner_id == "" else None


def codebase_ground(codebase_id: str, codebase_version: Optional[int] = None) -> AsyncLayGround:
    """A codebase that is there, and stays."""

    async def lay(client: AsyncSandboxClient, undo: AsyncUndo) -> AsyncGround:
        return AsyncGround(codebase_id, codebase_version)

    return lay


def empty_ground(options: CodebaseOptions) -> AsyncLayGround:
    """An empty codebase, which goes with the sandbox."""

    async def lay(client: AsyncSandboxClient, undo: AsyncUndo) -> AsyncGround:
        codebase_id = await own_codebase(
            client, undo, "sandbox" if options.name is None else options.name, options.owner_id
        )
        return AsyncGround(codebase_id, is_own=True)

    return lay


def snapshot_ground(snapshot_id: str) -> AsyncLayGround:
    """A snapshot, and the codebase that it is on."""

    async def lay(client: AsyncSandboxClient, undo: AsyncUndo) -> AsyncGround:
        return AsyncGround("", snapshot_id=snapshot_id)

    return lay
