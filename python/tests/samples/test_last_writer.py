"""Two sandboxes on one codebase, as the concepts have it: each writes into its own layer, and the last writer wins."""

from __future__ import annotations

from agentfense import Sandbox, SandboxClient
from tests.server import Server


def test_the_last_of_two_sandboxes_on_one_codebase_decides_what_it_holds(server: Server) -> None:
    with SandboxClient(server.endpoint) as client:
        codebase = client.create_codebase("shared", "somebody")
        for word in ("A", "B"):
            with Sandbox.from_codebase(codebase.id, "full-access", client=client) as sandbox:
                sandbox.run(f"echo {word} > /workspace/output.txt")
        assert client.download_file(codebase.id, "output.txt") == b"B\n"
        client.delete_codebase(codebase.id)


def test_before_the_end_neither_of_two_sandboxes_on_one_codebase_sees_what_the_other_writes(server: Server) -> None:
    with SandboxClient(server.endpoint) as client:
        codebase = client.create_codebase("shared", "somebody")
        with (
            Sandbox.from_codebase(codebase.id, "full-access", client=client, sync="manual") as one,
            Sandbox.from_codebase(codebase.id, "full-access", client=client, sync="manual") as other,
        ):
            one.run("echo A > output.txt")
            other.run("echo B > output.txt")
            assert [sandbox.run("cat output.txt").stdout for sandbox in (one, other)] == ["A\n", "B\n"]
            assert client.list_files(codebase.id) == []
            one.apply()
            other.apply()
            assert client.download_file(codebase.id, "output.txt") == b"B\n"
        client.delete_codebase(codebase.id)
