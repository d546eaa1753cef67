# Generated from tests/async_face/test_client_changes.py by scripts/generate_sync.py: change it there.
"""What a sandbox changed, call by call, against a real server."""

from __future__ import annotations

import pytest

from agentfense import ChangeKind, EntryKind, SandboxClient, SandboxError
from agentfense.types import Change, Codebase, SandboxInfo


def test_changes_are_listed_compared_applied_and_discarded(
    client: SandboxClient, sandbox: SandboxInfo, codebase: Codebase
) -> None:
    client.exec(sandbox.id, "echo two >> README.md; mkdir new; printf xyz > new/file; rm src/app.py")
    changes = client.list_changes(sandbox.id)
    assert Change(ChangeKind.ADDED, "/new/file", "", EntryKind.FILE, 3) in changes
    assert [(change.kind, change.path) for change in changes] == [
        ("modified", "/README.md"),
        ("added", "/new"),
        ("added", "/new/file"),
        ("deleted", "/src/app.py"),
    ]
    [diff] = [diff for diff in client.diff_changes(sandbox.id, ["/README.md"])]
    assert (diff.change.path, diff.binary, "+two" in diff.unified) == ("/README.md", False, True)
    tried = client.apply_changes(sandbox.id, dry_run=True)
    assert (tried.version, len(tried.outcomes)) == (0, 4)
    discarded = client.discard_changes(sandbox.id, ["/src"])
    assert [change.path for change in discarded] == ["/src/app.py"]
    applied = client.apply_changes(sandbox.id, ["/README.md"])
    assert applied.version == codebase.version + 1
    [outcome] = applied.outcomes
    assert (outcome.change.path, outcome.applied, outcome.sensitive, outcome.conflict) == (
        "/README.md",
        True,
        False,
        False,
    )
    assert client.download_file(codebase.id, "README.md") == b"# Project\ntwo\n"
    assert [change.path for change in client.list_changes(sandbox.id)] == ["/new", "/new/file"]


def test_what_a_machine_runs_unasked_is_marked_and_can_be_held_back(
    client: SandboxClient, sandbox: SandboxInfo, codebase: Codebase
) -> None:
    client.exec(sandbox.id, "touch conftest.py plain.py", check=True)
    marks = [(change.path, change.sensitive) for change in client.list_changes(sandbox.id)]
    assert marks == [("/conftest.py", True), ("/plain.py", False)]
    held = client.apply_changes(sandbox.id, hold_executables=True)
    assert [(outcome.change.path, outcome.applied) for outcome in held.outcomes] == [
        ("/conftest.py", False),
        ("/plain.py", True),
    ]
    client.apply_changes(sandbox.id)
    [change] = client.get_version(codebase.id, held.version + 1).changes
    assert (change.path, change.sensitive) == ("conftest.py", True)


def test_a_list_has_what_does_not_fit_one_page(client: SandboxClient, sandbox: SandboxInfo) -> None:
    client.exec(sandbox.id, "seq -f %04g 1100 | xargs touch", check=True)
    changes = client.list_changes(sandbox.id)
    assert [change.path for change in changes] == [f"/{number:04}" for number in range(1, 1101)]


def test_a_sandbox_that_never_syncs_refuses_to_apply(client: SandboxClient, codebase: Codebase) -> None:
    sandbox = client.create_sandbox(codebase.id, preset="full-access", sync="never")
    client.start_sandbox(sandbox.id)
    with pytest.raises(SandboxError) as raised:
        client.apply_changes(sandbox.id)
    assert raised.value.code == "SYNC_REFUSED"
