"""What a sandbox changed, call by call, against a real server."""

from __future__ import annotations

import pytest

from agentfense import AsyncSandboxClient, ChangeKind, EntryKind, SandboxError
from agentfense.types import Change, Codebase, SandboxInfo


async def test_changes_are_listed_compared_applied_and_discarded(
    client: AsyncSandboxClient, sandbox: SandboxInfo, codebase: Codebase
) -> None:
    await client.exec(sandbox.id, "echo two >> README.md; mkdir new; printf xyz > new/file; rm src/app.py")
    changes = await client.list_changes(sandbox.id)
    assert Change(ChangeKind.ADDED, "/new/file", "", EntryKind.FILE, 3) in changes
    assert [(change.kind, change.path) for change in changes] == [
        ("modified", "/README.md"),
        ("added", "/new"),
        ("added", "/new/file"),
        ("deleted", "/src/app.py"),
    ]
    [diff] = [diff async for diff in client.diff_changes(sandbox.id, ["/README.md"])]
    assert (diff.change.path, diff.binary, "+two" in diff.unified) == ("/README.md", False, True)
    tried = await client.apply_changes(sandbox.id, dry_run=True)
    assert (tried.version, len(tried.outcomes)) == (0, 4)
    discarded = await client.discard_changes(sandbox.id, ["/src"])
    assert [change.path for change in discarded] == ["/src/app.py"]
    applied = await client.apply_changes(sandbox.id, ["/README.md"])
    assert applied.version == codebase.version + 1
    [outcome] = applied.outcomes
    assert (outcome.change.path, outcome.applied, outcome.sensitive, outcome.conflict) == (
        "/README.md",
        True,
        False,
        False,
    )
    assert await client.download_file(codebase.id, "README.md") == b"# Project\ntwo\n"
    assert [change.path for change in await client.list_changes(sandbox.id)] == ["/new", "/new/file"]


async def test_what_a_machine_runs_unasked_is_marked_and_can_be_held_back(
    client: AsyncSandboxClient, sandbox: SandboxInfo, codebase: Codebase
) -> None:
    await client.exec(sandbox.id, "touch conftest.py plain.py", check=True)
    marks = [(change.path, change.sensitive) for change in await client.list_changes(sandbox.id)]
    assert marks == [("/conftest.py", True), ("/plain.py", False)]
    held = await client.apply_changes(sandbox.id, hold_executables=True)
    assert [(outcome.change.path, outcome.applied) for outcome in held.outcomes] == [
        ("/conftest.py", False),
        ("/plain.py", True),
    ]
    await client.apply_changes(sandbox.id)
    [change] = (await client.get_version(codebase.id, held.version + 1)).changes
    assert (change.path, change.sensitive) == ("conftest.py", True)


async def test_a_list_has_what_does_not_fit_one_page(client: AsyncSandboxClient, sandbox: SandboxInfo) -> None:
    await client.exec(sandbox.id, "seq -f %04g 1100 | xargs touch", check=True)
    changes = await client.list_changes(sandbox.id)
    assert [change.path for change in changes] == [f"/{number:04}" for number in range(1, 1101)]


async def test_a_sandbox_that_never_syncs_refuses_to_apply(client: AsyncSandboxClient, codebase: Codebase) -> None:
    sandbox = await client.create_sandbox(codebase.id, preset="full-access", sync="never")
    await client.start_sandbox(sandbox.id)
    with pytest.raises(SandboxError) as raised:
        await client.apply_changes(sandbox.id)
    assert raised.value.code == "SYNC_REFUSED"
