"""How a server is reached, and what becomes of one that is not there, hangs or is busy."""

from __future__ import annotations

import tempfile
import threading
import time
from typing import Any, Dict, Iterator, List, NamedTuple

import grpc
import pytest

from agentfense import (
    AsyncSandboxClient,
    AuthenticationError,
    CodebaseNotFoundError,
    ConnectionError,
    InvalidConfigurationError,
    PermissionDeniedError,
    ResourceLimitExceededError,
    Role,
    SandboxError,
    TlsOptions,
)
from agentfense._connection.method import CodebaseService, SandboxService, SystemService
from agentfense._wire.sandbox.v1 import codebase_pb2, sandbox_pb2, system_pb2
from tests.server import Server
from tests.support.certificates import self_signed
from tests.support.fake_server import fake_server, streaming, unary, uploading
from tests.support.keys import administrator_key, storage_in
from tests.support.ports import unused_address

INFO = system_pb2.ServerInfo(version="1", role=system_pb2.ROLE_USER)


class Busy:
    """Answers that the server is busy so many times, then for good."""

    def __init__(self, times: int, answer: Any) -> None:
        self.calls = 0
        self._times = times
        self._answer = answer

    def __call__(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.calls += 1
        if self.calls <= self._times:
            context.abort(grpc.StatusCode.UNAVAILABLE, "busy")
        return self._answer


class Hanging:
    """Answers when the caller has left."""

    def __init__(self) -> None:
        self.was_left = threading.Event()

    def __call__(self, request: Any, context: grpc.ServicerContext) -> Any:
        context.add_callback(self.was_left.set)
        self.was_left.wait()
        return INFO


async def test_a_client_knows_its_server(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTFENSE_ENDPOINT", server.endpoint)
    monkeypatch.setenv("AGENTFENSE_API_KEY", "af_some")
    async with AsyncSandboxClient() as client:
        assert client.name == f"http://{server.endpoint}"
        info = await client.get_server_info()
    assert (info.keys_required, info.role, "bwrap" in info.runtimes) == (False, Role.ADMIN, True)
    with pytest.raises(ConnectionError, match="the client is closed"):
        await client.get_server_info()


class Guarded(NamedTuple):
    """A server that speaks TLS and asks for keys; an owner may have one sandbox."""

    endpoint: str
    trust: TlsOptions
    #: An administrator's key.
    secret: str


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    directory = tmp_path_factory.mktemp("guarded")
    certificate = self_signed(directory)
    tls = {"cert_file": str(certificate.cert_file), "key_file": str(certificate.key_file)}
    settings: Dict[str, Dict[str, object]] = {
        "storage": storage_in(directory),
        "server": {"tls": tls},
        "auth": {"keys": "required"},
        "sandbox": {"max_per_user": 1},
    }
    with Server.start(settings) as server:
        trust = TlsOptions(ca=certificate.cert_file.read_text())
        yield Guarded(server.endpoint, trust, administrator_key(directory))


async def test_keys_open_what_they_are_for(guarded: Guarded) -> None:
    async with AsyncSandboxClient(f"https://{guarded.endpoint}", tls=guarded.trust, api_key=guarded.secret) as admin:
        made = await admin.create_key("bob", role="user", name="laptop")
        assert (made.key.owner_id, made.key.role, made.key.name) == ("bob", Role.USER, "laptop")
        theirs = await admin.create_codebase("theirs", "operator")
        async with AsyncSandboxClient(guarded.endpoint, True, tls=guarded.trust, api_key=made.secret) as bob:
            assert (await bob.get_server_info()).owner_id == "bob"
            with pytest.raises(PermissionDeniedError) as forbidden:
                await bob.list_keys()
            assert forbidden.value.code == "ROLE_FORBIDS"
            with pytest.raises(CodebaseNotFoundError):
                await bob.get_codebase(theirs.id)
            await admin.revoke_key(made.key.id)
            with pytest.raises(AuthenticationError) as revoked:
                await bob.get_server_info()
            assert revoked.value.code == "UNAUTHENTICATED"
        [listed] = [key for key in await admin.list_keys() if key.id == made.key.id]
        assert listed.revoked_at is not None
        with pytest.raises(SandboxError) as unknown:
            await admin.revoke_key("key_none")
        assert unknown.value.code == "KEY_NOT_FOUND"


async def test_a_limit_of_an_owner(guarded: Guarded) -> None:
    async with AsyncSandboxClient(guarded.endpoint, tls=guarded.trust, api_key=guarded.secret) as client:
        codebase = await client.create_codebase("project", "operator")
        await client.create_sandbox(codebase.id)
        with pytest.raises(ResourceLimitExceededError) as raised:
            await client.create_sandbox(codebase.id)
    assert (raised.value.code, raised.value.retryable) == ("LIMIT_EXCEEDED", False)


async def test_a_certificate_has_to_be_vouched_for(guarded: Guarded) -> None:
    async with AsyncSandboxClient(f"https://{guarded.endpoint}", retries=0) as distrustful:
        with pytest.raises(ConnectionError, match="is signed by nobody we know") as untrusted:
            await distrustful.get_server_info()
        assert not untrusted.value.retryable
    async with AsyncSandboxClient(guarded.endpoint, retries=0) as in_the_clear:
        with pytest.raises(ConnectionError):
            await in_the_clear.get_server_info()


async def test_a_server_that_does_not_speak_tls(server: Server) -> None:
    async with AsyncSandboxClient(f"https://{server.endpoint}", retries=0) as client:
        with pytest.raises(ConnectionError, match="does not speak TLS"):
            await client.get_server_info()


async def test_a_server_at_a_socket() -> None:
    # Not below the directory of the test: the path of a socket must be short.
    with tempfile.TemporaryDirectory() as directory:
        address = f"unix:{directory}/socket"
        with Server.start({"server": {"grpc_addr": address}}):
            async with AsyncSandboxClient(address) as client:
                assert (await client.get_server_info()).role is Role.ADMIN
        async with AsyncSandboxClient(address, retries=0) as nobody:
            with pytest.raises(ConnectionError, match=f"nothing listens at {address}"):
                await nobody.get_server_info()


async def test_nobody_there_is_told_soon() -> None:
    address = unused_address()
    async with AsyncSandboxClient(address) as client:
        began_at = time.monotonic()
        with pytest.raises(ConnectionError) as raised:
            await client.get_server_info()
        # Three pauses, which are 0.7 s together at most, and what a busy machine adds.
        assert time.monotonic() - began_at < 5
    error = raised.value
    assert (error.message, error.code) == (f"nothing listens at http://{address}", "CONNECTION_FAILED")
    assert (error.hint, error.retryable) == ("is the server running?", True)


async def test_a_machine_that_nobody_knows() -> None:
    async with AsyncSandboxClient("http://agentfense.invalid:9000", retries=0) as client:
        with pytest.raises(ConnectionError, match="there is no machine of that name"):
            await client.get_server_info()


async def test_an_idempotent_call_is_tried_again() -> None:
    busy = Busy(2, INFO)
    with fake_server(unary(SystemService.get_server_info, busy)) as endpoint:
        async with AsyncSandboxClient(endpoint) as client:
            assert (await client.get_server_info()).version == "1"
            assert busy.calls == 3
        patient = Busy(9, INFO)
    with fake_server(unary(SystemService.get_server_info, patient)) as endpoint:
        async with AsyncSandboxClient(endpoint, retries=1) as client:
            with pytest.raises(ConnectionError, match="busy"):
                await client.get_server_info()
    assert patient.calls == 2


async def test_a_call_that_makes_something_is_not_tried_again() -> None:
    busy = Busy(1, codebase_pb2.Codebase())
    with fake_server(unary(CodebaseService.create_codebase, busy)) as endpoint:
        async with AsyncSandboxClient(endpoint) as client:
            with pytest.raises(ConnectionError):
                await client.create_codebase("x", "me")
    assert busy.calls == 1


async def test_an_upload_is_sent_again_when_it_can_be_made_again() -> None:
    received: List[int] = []

    class Taking(Busy):
        def __call__(self, request: Any, context: grpc.ServicerContext) -> Any:
            received.append(sum(1 for _ in request))
            return super().__call__(request, context)

    with fake_server(uploading(CodebaseService.upload_files, Taking(1, codebase_pb2.UploadResult()))) as endpoint:
        async with AsyncSandboxClient(endpoint) as client:
            await client.upload_file("cb_1", "a", b"content")
    assert received == [3, 3]
    with fake_server(uploading(CodebaseService.upload_files, Taking(1, codebase_pb2.UploadResult()))) as endpoint:
        async with AsyncSandboxClient(endpoint) as client:
            with pytest.raises(ConnectionError):
                await client.upload_file("cb_1", "a", iter([b"content"]))
    assert received == [3, 3, 3]


async def test_a_stream_is_tried_again_up_to_its_first_message() -> None:
    calls: List[str] = []

    def answer(request: Any, context: grpc.ServicerContext) -> Iterator[codebase_pb2.FileChunk]:
        calls.append("begun")
        if len(calls) > 1:
            yield codebase_pb2.FileChunk(data=b"one")
        context.abort(grpc.StatusCode.UNAVAILABLE, "busy")

    with fake_server(streaming(SandboxService.read_file, answer)) as endpoint:
        async with AsyncSandboxClient(endpoint) as client:
            stream = client.read_file("sb_1", "a")
            assert await stream.__anext__() == b"one"
            with pytest.raises(ConnectionError):
                await stream.__anext__()
    assert len(calls) == 2


async def test_a_stream_without_its_end_is_an_error() -> None:
    def answer(request: Any, context: grpc.ServicerContext) -> Iterator[sandbox_pb2.ExecOutput]:
        yield sandbox_pb2.ExecOutput(type=sandbox_pb2.ExecOutput.OUTPUT_TYPE_STDOUT, data=b"one")

    with fake_server(streaming(SandboxService.exec_stream, answer)) as endpoint:
        async with AsyncSandboxClient(endpoint) as client:
            with pytest.raises(ConnectionError, match="did not say how the command ended: make"):
                [event async for event in client.exec_stream("sb_1", "make")]


async def test_a_server_that_hangs_is_given_up() -> None:
    hanging = Hanging()
    with fake_server(unary(SystemService.get_server_info, hanging)) as endpoint:
        async with AsyncSandboxClient(endpoint, request_timeout=0.5) as client:
            began_at = time.monotonic()
            with pytest.raises(ConnectionError, match=r"no answer from http://\S+ within 0\.5 s"):
                await client.get_server_info()
            assert time.monotonic() - began_at < 5
            assert hanging.was_left.wait(5)


async def test_a_command_has_its_own_time_and_that_for_the_way() -> None:
    hanging = Hanging()
    with fake_server(unary(SandboxService.exec, hanging)) as endpoint:
        async with AsyncSandboxClient(endpoint, request_timeout=0.3) as client:
            with pytest.raises(ConnectionError, match=r"within 0\.8 s"):
                await client.exec("sb_1", "true", timeout=0.5)


async def test_a_status_without_details_is_judged_by_itself() -> None:
    def refuse(request: Any, context: grpc.ServicerContext) -> Any:
        key = str(dict(context.invocation_metadata())["authorization"])
        context.abort(grpc.StatusCode[key.removeprefix("Bearer ")], "no")

    expected = {
        "INVALID_ARGUMENT": (InvalidConfigurationError, "INVALID_ARGUMENT"),
        "UNAUTHENTICATED": (AuthenticationError, "UNAUTHENTICATED"),
        "PERMISSION_DENIED": (PermissionDeniedError, "UNKNOWN"),
        "RESOURCE_EXHAUSTED": (ResourceLimitExceededError, "UNKNOWN"),
        "NOT_FOUND": (SandboxError, "UNKNOWN"),
    }
    with fake_server(unary(SystemService.get_server_info, refuse)) as endpoint:
        for status, (error, code) in expected.items():
            async with AsyncSandboxClient(endpoint, api_key=status) as client:
                with pytest.raises(error) as raised:
                    await client.get_server_info()
            assert (type(raised.value), raised.value.code, raised.value.grpc_code) == (error, code, status)


@pytest.mark.parametrize("options", [{"request_timeout": 0}, {"request_timeout": -1}, {"retries": -1}])
async def test_nonsense_is_refused_at_once(options: Any) -> None:
    with pytest.raises(InvalidConfigurationError):
        AsyncSandboxClient(**options)
