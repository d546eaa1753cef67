"""Another user of the machine waits where a server could be: nothing is sent there."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Iterator

import pytest

from agentfense import Sandbox, _server
from agentfense.exceptions import ConnectionError, InvalidConfigurationError
from tests.samples.network import in_network_of_its_own
from tests.server import CLI, REPOSITORY
from tests.support.other_user import Eavesdropper, other_user, visit

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="becoming another user takes root")


@pytest.fixture
def top(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A short path, for sockets, that everybody can enter; nobody named a server."""
    place = Path(tempfile.mkdtemp(prefix="agentfense-others-"))
    place.chmod(0o755)
    for name in ("XDG_RUNTIME_DIR", "AGENTFENSE_ENDPOINT", "AGENTFENSE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    yield place
    shutil.rmtree(place)


IN_A_NETWORK = """
import sys
from agentfense import Sandbox
from tests.samples.network import raise_loopback
from tests.support.other_user import Eavesdropper

raise_loopback()
with Eavesdropper("9000") as other:
    with Sandbox.from_local(sys.argv[1]) as sandbox:
        print(sandbox.client.name.split("/")[0], sandbox.run("cat secret.txt").stdout.strip())
    print(other.received_bytes())
"""


def test_a_project_does_not_go_to_who_listens_at_the_port_of_a_server(top: Path) -> None:
    project = top / "project"
    project.mkdir(mode=0o700)
    (project / "secret.txt").write_text("plans\n", encoding="utf-8")
    node = REPOSITORY / "node_modules" / ".bin" / "node"
    done = subprocess.run(
        in_network_of_its_own([sys.executable, "-c", IN_A_NETWORK, str(project)]),
        env={
            **os.environ,
            "AGENTFENSE_COMMAND": shlex.join([str(node) if node.exists() else "node", str(CLI)]),
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        },
        cwd=REPOSITORY / "python",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("unix: plans\n0\n", "")


def says(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Has a program that says it listens there be the private server."""
    line = f"echo 'agentfense: gRPC on unix:{path}, no REST'; cat"
    monkeypatch.setenv("AGENTFENSE_COMMAND", shlex.join(["/bin/sh", "-c", line, "agentfense"]))


def theirs(top: Path) -> Path:
    directory = top / "theirs"
    directory.mkdir()
    os.chown(directory, other_user(), other_user())
    return directory


def test_a_socket_in_a_directory_of_theirs_is_not_used(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = theirs(top) / "grpc.sock"
    says(monkeypatch, planted)
    with Eavesdropper(str(planted)) as other:
        with pytest.raises(ConnectionError, match=f"but other users can change {planted.parent}"):
            Sandbox.create()
        assert other.received_bytes() == 0


def test_nor_one_that_a_link_of_ours_leads_to(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = theirs(top) / "grpc.sock"
    (top / "grpc.sock").symlink_to(planted)
    says(monkeypatch, top / "grpc.sock")
    with Eavesdropper(str(planted)) as other:
        with pytest.raises(ConnectionError, match=f"but other users can change {planted.parent}"):
            Sandbox.create()
        assert other.received_bytes() == 0


def test_nor_one_at_which_they_listen_wherever_it_is(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = theirs(top) / "grpc.sock"
    says(monkeypatch, planted)
    with Eavesdropper(str(planted)) as other:
        os.chown(planted.parent, 0, 0)
        with pytest.raises(ConnectionError, match=f"but it is user {other_user()} who answers there"):
            Sandbox.create()
        assert other.received_bytes() == 0


def test_nor_one_where_everybody_could_put_another(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_to_all = top / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o1777)
    says(monkeypatch, open_to_all / "grpc.sock")
    with Eavesdropper(str(open_to_all / "grpc.sock")) as other:
        with pytest.raises(ConnectionError, match="but other users can change"):
            _server.lease()
        assert other.received_bytes() == 0


def test_what_is_sent_to_them_would_be_seen(top: Path) -> None:
    planted = theirs(top) / "grpc.sock"
    with Eavesdropper(str(planted)) as other:
        visit(planted)
        assert other.received_bytes() == len(b"secret")


def test_a_key_goes_nowhere_without_a_name(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTFENSE_API_KEY", "af_secret")
    with pytest.raises(InvalidConfigurationError, match="no server is named"):
        Sandbox.list()
