"""The rules of a sandbox."""

from __future__ import annotations

import pytest

from agentfense import AsyncSandbox, InvalidConfigurationError, Permission, PermissionRule, get_preset
from tests.server import Server


async def test_those_in_force_why_and_others(server: Server) -> None:
    given = [{"pattern": "/src/**", "permission": "write"}]
    async with AsyncSandbox.create(preset="agent-safe", permissions=given, endpoint=server.endpoint) as sandbox:
        before = await sandbox.permissions.get()
        assert len(before) == len(get_preset("agent-safe")) + 1
        assert (before[-1].pattern, before[-1].permission) == ("/src/**", Permission.WRITE)
        explanation = await sandbox.permissions.explain("src/a.py")
        assert explanation.permission is Permission.WRITE
        assert explanation.deciding is not None
        assert explanation.deciding.rule.pattern == "/src/**"
        assert await sandbox.explain("src/a.py") == explanation

        after = await sandbox.permissions.update([PermissionRule("/docs/**", Permission.READ)])
        assert [rule.pattern for rule in after] == ["/docs/**"]
        assert list(sandbox.info.permissions) == after
        assert (await sandbox.explain("src/a.py")).permission is Permission.NONE

        assert await sandbox.update_permissions(preset="full-access") == await sandbox.permissions.get()
        assert (await sandbox.explain("src/a.py")).permission is Permission.WRITE


async def test_rules_that_are_none_change_nothing(server: Server) -> None:
    async with AsyncSandbox.create(preset="read-only", endpoint=server.endpoint) as sandbox:
        before = await sandbox.permissions.get()
        for wrong in ([{"pattern": "/a", "permission": "execute"}], [{"pattern": "", "permission": "read"}]):
            with pytest.raises(InvalidConfigurationError):
                await sandbox.update_permissions(wrong)
        with pytest.raises(InvalidConfigurationError):
            await sandbox.update_permissions(preset="no-such-preset")
        assert await sandbox.permissions.get() == before
