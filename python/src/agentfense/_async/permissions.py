"""The rules of a sandbox."""

from __future__ import annotations

from typing import Callable, Iterable, List, Optional

from agentfense._async.client import AsyncSandboxClient
from agentfense.types import PathExplanation, PermissionRule, RuleLike, SandboxInfo


class AsyncSandboxPermissions:
    """The rules of a sandbox: ``sandbox.permissions``."""

    def __init__(self, client: AsyncSandboxClient, sandbox_id: str, learn: Callable[[SandboxInfo], None]) -> None:
        """Takes besides who is told what the server says of the sandbox."""
        self._client = client
        self._sandbox_id = sandbox_id
        self._learn = learn

    async def get(self) -> List[PermissionRule]:
        """Gives those in force now."""
        return self._learned(await self._client.get_sandbox(self._sandbox_id))

    async def update(
        self, permissions: Optional[Iterable[RuleLike]] = None, preset: Optional[str] = None
    ) -> List[PermissionRule]:
        """Puts new rules in the place of all there were, at once; gives those in force then.

        Args:
            permissions: Exactly these; with a preset, its rules first. Without either: those of agent-safe.
            preset: The name of a preset.
        """
        return self._learned(
            await self._client.update_permissions(self._sandbox_id, permissions=permissions, preset=preset)
        )

    async def explain(self, path: str) -> PathExplanation:
        """Tells which rule decides about a path, and which ones lost."""
        return await self._client.explain_path(self._sandbox_id, path)

    def _learned(self, info: SandboxInfo) -> List[PermissionRule]:
        self._learn(info)
        return list(info.permissions)
