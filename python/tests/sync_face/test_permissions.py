# Generated from tests/async_face/test_permissions.py by scripts/generate_sync.py: change it there.
"""The rules of a sandbox."""

from __future__ import annotations

import pytest

from agentfense import InvalidConfigurationError, Permission, PermissionRule, Sandbox, get_preset
from tests.server import Server


def test_those_in_force_why_and_others(server: Server) -> None:
    given = [{"pattern": "/src/**", "permission": "write"}]
    with Sandbox.create(preset="agent-safe", permissions=given, endpoint=server.endpoint) as sandbox:
        before = sandbox.permissions.get()
        assert len(before) == len(get_preset("agent-safe")) + 1
        assert (before[-1].pattern, before[-1].permission) == ("/src/**", Permission.WRITE)
        explanation = sandbox.permissions.explain("src/a.py")
        assert explanation.permission is Permission.WRITE
        assert explanation.deciding is not None
        assert explanation.deciding.rule.pattern == "/src/**"
        assert sandbox.explain("src/a.py") == explanation

        after = sandbox.permissions.update([PermissionRule("/docs/**", Permission.READ)])
        assert [rule.pattern for rule in after] == ["/docs/**"]
        assert list(sandbox.info.permissions) == after
        assert sandbox.explain("src/a.py").permission is Permission.NONE

        assert sandbox.update_permissions(preset="full-access") == sandbox.permissions.get()
        assert sandbox.explain("src/a.py").permission is Permission.WRITE


def test_rules_that_are_none_change_nothing(server: Server) -> None:
    with Sandbox.create(preset="read-only", endpoint=server.endpoint) as sandbox:
        before = sandbox.permissions.get()
        for wrong in ([{"pattern": "/a", "permission": "execute"}], [{"pattern": "", "permission": "read"}]):
            with pytest.raises(InvalidConfigurationError):
                sandbox.update_permissions(wrong)
        with pytest.raises(InvalidConfigurationError):
            sandbox.update_permissions(preset="no-such-preset")
        assert sandbox.permissions.get() == before
