"""The life of a sandbox, call by call, against a real server."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Dict

import pytest

from agentfense import (
    AsyncSandboxClient,
    HomeInfo,
    InvalidConfigurationError,
    NetworkList,
    NetworkMode,
    NetworkRule,
    PatternType,
    Permission,
    PermissionRule,
    ResourceLimits,
    RuntimeType,
    RuntimeUnavailableError,
    SandboxError,
    SandboxNotFoundError,
    SandboxNotRunningError,
    SandboxStatus,
    SyncMode,
)
from agentfense._face.async_face import sleep
from agentfense.types import Codebase, SandboxInfo

NO_SANDBOX = "sb_" + "0" * 32


async def test_a_sandbox_is_what_was_asked_for(client: AsyncSandboxClient, codebase: Codebase) -> None:
    made = await client.create_sandbox(
        codebase.id,
        [{"pattern": "/docs/**", "permission": "write", "priority": 3}, PermissionRule("/src/", Permission.READ)],
        {"team": "blue"},
        timedelta(hours=1),
        "bwrap",
        resources=ResourceLimits(memory_bytes=256 * 1024 * 1024, pids_limit=50),
        network=NetworkMode.NONE,
        sync="never",
        env={"GREETING": "hello"},
        codebase_version=1,
        revocable=True,
    )
    assert (made.status, made.runtime, made.network, made.sync) == (
        SandboxStatus.PENDING,
        RuntimeType.BWRAP,
        NetworkMode.NONE,
        SyncMode.NEVER,
    )
    assert made.permissions == (
        PermissionRule("/docs/**", Permission.WRITE, PatternType.GLOB, 3),
        PermissionRule("/src/", Permission.READ, PatternType.DIRECTORY),
    )
    assert (made.labels, made.codebase_version, made.revocable) == ({"team": "blue"}, 1, True)
    assert (made.resources.memory_bytes, made.resources.pids_limit) == (256 * 1024 * 1024, 50)
    assert made.expires_at is not None
    assert timedelta(minutes=59) < made.expires_at - made.created_at < timedelta(minutes=61)
    assert (made.started_at, made.stopped_at) == (None, None)
    assert await client.get_sandbox(made.id) == made


async def test_a_sandbox_without_rules_is_agent_safe(client: AsyncSandboxClient, codebase: Codebase) -> None:
    safe = await client.create_sandbox(codebase.id)
    assert safe.permissions == (await client.create_sandbox(codebase.id, preset="agent-safe")).permissions
    assert (await client.create_sandbox(codebase.id, [])).permissions == ()
    both = await client.create_sandbox(codebase.id, [{"pattern": "/x", "permission": "none"}], preset="full-access")
    assert both.permissions[-1].pattern == "/x"
    assert len(both.permissions) > 1


async def test_sandboxes_are_found_by_what_they_have(client: AsyncSandboxClient, codebase: Codebase) -> None:
    blue = await client.create_sandbox(codebase.id, labels={"team": "blue"})
    red = await client.create_sandbox(codebase.id, labels={"team": "red"})
    assert {each.id for each in await client.list_sandboxes(codebase.id)} == {blue.id, red.id}
    assert await client.list_sandboxes(codebase.id, labels={"team": "red"}, status="pending") == [red]
    assert await client.list_sandboxes(codebase.id, status=SandboxStatus.RUNNING) == []
    assert await client.list_sandboxes(codebase.id, owner_id="nobody") == []


async def test_a_sandbox_starts_stops_and_goes(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    assert sandbox.status is SandboxStatus.RUNNING
    assert sandbox.started_at is not None
    with pytest.raises(SandboxError) as raised:
        await client.start_sandbox(sandbox.id)
    assert raised.value.code == "SANDBOX_ALREADY_RUNNING"
    stopped = await client.stop_sandbox(sandbox.id)
    assert stopped.status is SandboxStatus.STOPPED
    with pytest.raises(SandboxNotRunningError) as not_running:
        await client.exec(sandbox.id, "true")
    assert not_running.value.code == "SANDBOX_NOT_RUNNING"
    assert not_running.value.hint is not None
    assert str(not_running.value) == f"{not_running.value.message} ({not_running.value.hint})"
    await client.destroy_sandbox(sandbox.id)
    with pytest.raises(SandboxNotFoundError):
        await client.get_sandbox(sandbox.id)


async def test_a_sandbox_is_paused_and_goes_on(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    assert (await client.pause_sandbox(sandbox.id)).status is SandboxStatus.PAUSED
    assert sandbox.id in {each.id for each in await client.list_sandboxes(status="paused")}
    with pytest.raises(SandboxNotRunningError) as paused:
        await client.exec(sandbox.id, "true")
    assert paused.value.code == "SANDBOX_PAUSED"
    assert (await client.resume_sandbox(sandbox.id)).status is SandboxStatus.RUNNING
    assert (await client.exec(sandbox.id, "true")).success


async def test_a_sandbox_pauses_by_itself_when_it_is_told_to(client: AsyncSandboxClient, codebase: Codebase) -> None:
    assert (await client.create_sandbox(codebase.id, idle_pause=600)).idle_pause == timedelta(minutes=10)
    assert (await client.create_sandbox(codebase.id, idle_pause=0)).idle_pause is None
    made = await client.create_sandbox(codebase.id, idle_pause=0.02)
    await client.start_sandbox(made.id)
    while (await client.get_sandbox(made.id)).status is not SandboxStatus.PAUSED:
        await sleep(0.01)
    assert (await client.get_sandbox(made.id)).status_reason == "idle"
    assert (await client.exec(made.id, "true")).success


async def test_new_rules_count_at_once(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    assert (await client.exec(sandbox.id, "cat README.md")).success
    changed = await client.update_permissions(sandbox.id, [{"pattern": "/src/**", "permission": "read"}])
    assert [rule.pattern for rule in changed.permissions] == ["/src/**"]
    hidden = await client.exec(sandbox.id, "cat README.md")
    assert (hidden.exit_code, "No such file" in hidden.stderr) == (1, True)
    assert len((await client.update_permissions(sandbox.id, preset="read-only")).permissions) > 0


async def test_a_list_of_hosts_is_kept_and_replaced(client: AsyncSandboxClient, codebase: Codebase) -> None:
    hosts = NetworkList(["GitHub.com:22", NetworkRule("*.example.com", [443], ["GET"], ["/v1/*"])], ["pypi"])
    made = await client.create_sandbox(codebase.id, preset="read-only", network=hosts)
    assert made.network is NetworkMode.FILTERED
    assert made.network_rules[-2:] == (
        NetworkRule("github.com", (22,)),
        NetworkRule("*.example.com", (443,), ("GET",), ("/v1/*",)),
    )
    assert "pypi.org" in [rule.host for rule in made.network_rules]
    here = NetworkRule("example.org", addresses=["93.184.216.0/24"])
    changed = await client.update_network(made.id, NetworkList([here]))
    assert changed.network_rules == (NetworkRule("example.org", (443, 80), addresses=("93.184.216.0/24",)),)
    with pytest.raises(SandboxError, match="no full name of a host"):
        await client.update_network(made.id, NetworkList(["127.0.0.1"]))


async def test_a_sandbox_expires_when_it_was_said_last(client: AsyncSandboxClient, codebase: Codebase) -> None:
    made = await client.create_sandbox(codebase.id, expires_in=3600, workspace_home="/home/user", pause_at_expiry=True)
    assert (made.workspace_home, made.pause_at_expiry) == ("/home/user", True)
    assert (await client.update_expiry(made.id, 60, extend_only=True)).expires_at == made.expires_at
    sooner = await client.update_expiry(made.id, 60)
    assert sooner.expires_at is not None
    assert made.expires_at is not None
    assert sooner.expires_at < made.expires_at


async def test_a_level_is_explained(client: AsyncSandboxClient, codebase: Codebase) -> None:
    rules = [{"pattern": "**/*", "permission": "read"}, {"pattern": "/secrets/**", "permission": "none"}]
    sandbox = await client.create_sandbox(codebase.id, rules)
    why = await client.explain_path(sandbox.id, "/secrets/key")
    assert (why.path, why.permission) == ("/secrets/key", Permission.NONE)
    assert why.deciding is not None
    assert (why.deciding.index, why.deciding.rule.pattern) == (1, "/secrets/**")
    assert [each.index for each in why.losing] == [0]
    assert why.text == "/secrets/key is none: rule 1 decides: none"
    bare = await client.create_sandbox(codebase.id, [])
    assert (await client.explain_path(bare.id, "/any")).deciding is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"expires_in": 0}, "expires_in must be a number of seconds above 0"),
        ({"expires_in": timedelta(seconds=-1)}, "expires_in must be a number of seconds above 0"),
        ({"runtime": "vm"}, "runtime must be one of bwrap, docker, mock"),
        ({"network": "all"}, "network must be one of none, filtered, private, host"),
        ({"sync": "always"}, "sync must be one of on-exec, manual, never"),
        ({"resources": ResourceLimits(pids_limit=0)}, r"resources\.pids_limit must be above 0"),
        ({"env": {"PORT": 80}}, r"env\['PORT'\] must be a string, not 80"),
        ({"codebase_version": -1}, "codebase_version must be a whole number, 0 or more"),
        ({"preset": "agent-sfae"}, "agent-sfae"),
        ({"permissions": [{"pattern": "/a", "permission": "read"}, {"pattern": "/b", "permission": "rad"}]}, "rule 1"),
        ({"permissions": [{"pattern": "/a", "permission": "read", "priorty": 1}]}, "rule 0 .*priorty"),
    ],
)
async def test_a_mistake_is_told_before_anything_is_sent(options: Dict[str, Any], message: str) -> None:
    async with AsyncSandboxClient("127.0.0.1:1", retries=0) as client:
        with pytest.raises(InvalidConfigurationError, match=message):
            await client.create_sandbox("cb_1", **options)


async def test_what_a_server_refuses(client: AsyncSandboxClient, codebase: Codebase) -> None:
    with pytest.raises(SandboxNotFoundError) as missing:
        await client.start_sandbox(NO_SANDBOX)
    assert missing.value.code == "SANDBOX_NOT_FOUND"
    with pytest.raises(RuntimeUnavailableError) as unavailable:
        await client.create_sandbox(codebase.id, runtime=RuntimeType.MOCK)
    assert unavailable.value.code == "RUNTIME_UNAVAILABLE"
    with pytest.raises(InvalidConfigurationError):
        await client.get_sandbox("nonsense")


async def test_a_named_home_outlives_its_sandbox(client: AsyncSandboxClient, codebase: Codebase) -> None:
    made = await client.create_sandbox(codebase.id, home="tools")
    await client.start_sandbox(made.id)
    assert made.home == "tools"
    homes = await client.list_homes(owner_id=made.owner_id)
    assert homes == [HomeInfo("tools", made.owner_id, made.id)]
    with pytest.raises(SandboxError) as refused:
        await client.delete_home("tools", owner_id=made.owner_id)
    assert refused.value.code == "HOME_IN_USE"
    await client.destroy_sandbox(made.id)
    assert await client.list_homes(owner_id=made.owner_id) == [HomeInfo("tools", made.owner_id, "")]
    await client.delete_home("tools", owner_id=made.owner_id)
    assert await client.list_homes(owner_id=made.owner_id) == []
    with pytest.raises(SandboxError) as missing:
        await client.delete_home("tools", owner_id=made.owner_id)
    assert missing.value.code == "HOME_NOT_FOUND"
