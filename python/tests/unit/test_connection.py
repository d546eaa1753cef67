"""How a server is reached, and what its failures mean: the parts that wait for nothing."""

from __future__ import annotations

import warnings
from typing import Any, Dict, Optional, Tuple

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from agentfense._connection import method
from agentfense._connection.endpoint import choose_endpoint
from agentfense._connection.errors import Failure, sandbox_error
from agentfense._connection.method import Method
from agentfense._connection.options import call_metadata, channel_options
from agentfense._connection.retry import Deadline, pause_before
from agentfense._wire.sandbox.v1 import codebase_pb2, event_pb2, sandbox_pb2, system_pb2
from agentfense.exceptions import (
    ERROR_CLASSES,
    RETRYABLE_CODES,
    CommandError,
    CommandTimeoutError,
    ConnectionError,
    InvalidConfigurationError,
    SandboxError,
)
from agentfense.types import TlsOptions

PLACE = "http://localhost:9000"


def choose(endpoint: Optional[str] = None, environment: Optional[Dict[str, str]] = None, **options: Any) -> Any:
    given = {"secure": None, "api_key": None, "tls": None, **options}
    return choose_endpoint(endpoint, environment=environment or {}, **given)


# The methods.


@pytest.mark.parametrize("wire", [codebase_pb2, sandbox_pb2, event_pb2, system_pb2])
def test_every_method_of_the_contract_has_a_row(wire: Any) -> None:
    [service] = wire.DESCRIPTOR.services_by_name.values()
    rows = [each for each in vars(getattr(method, service.name)).values() if isinstance(each, Method)]
    assert {row.path for row in rows} == {f"/{service.full_name}/{each.name}" for each in service.methods}


def test_a_method_knows_whether_it_may_be_repeated() -> None:
    assert method.SandboxService.get_sandbox.idempotent
    assert method.SandboxService.destroy_sandbox.idempotent
    assert not method.SandboxService.create_sandbox.idempotent
    assert not method.SandboxService.exec.idempotent


# Where a server is.


@pytest.mark.parametrize(
    ("endpoint", "name", "target", "is_secure"),
    [
        ("localhost:9000", "http://localhost:9000", "dns:localhost:9000", False),
        ("far.example:1234", "http://far.example:1234", "dns:far.example:1234", False),
        ("http://far.example", "http://far.example:80", "dns:far.example:80", False),
        ("https://far.example/", "https://far.example:443", "dns:far.example:443", True),
        ("[::1]:9000", "http://[::1]:9000", "dns:[::1]:9000", False),
        ("unix:/run/agentfense.sock", "unix:/run/agentfense.sock", "unix:/run/agentfense.sock", False),
        ("unix:///run/agentfense.sock", "unix:/run/agentfense.sock", "unix:/run/agentfense.sock", False),
    ],
)
def test_an_endpoint(endpoint: str, name: str, target: str, is_secure: bool) -> None:
    chosen = choose(endpoint)
    assert (chosen.name, chosen.target, chosen.is_secure) == (name, target, is_secure)


def test_the_environment_is_asked_when_nothing_is_given() -> None:
    environment = {"AGENTFENSE_ENDPOINT": "https://far.example", "AGENTFENSE_API_KEY": "af_one"}
    assert (choose(None, environment).name, choose(None, environment).api_key) == ("https://far.example:443", "af_one")
    assert choose("https://near.example", environment, api_key="af_two").api_key == "af_two"
    assert choose("near.example:1", {"AGENTFENSE_API_KEY": ""}).api_key is None


@pytest.mark.parametrize("environment", [{}, {"AGENTFENSE_ENDPOINT": ""}, {"AGENTFENSE_API_KEY": "af_one"}])
def test_no_address_is_assumed(environment: Dict[str, str]) -> None:
    with pytest.raises(InvalidConfigurationError, match=r"^no server is named \(endpoint=…, or AGENTFENSE_ENDPOINT"):
        choose(None, environment)


def test_tls_is_asked_for_in_three_ways() -> None:
    assert choose("far.example:1", secure=True).name == "https://far.example:1"
    assert choose("far.example:1", tls=TlsOptions()).is_secure
    assert choose("https://far.example").is_secure
    assert not choose("far.example:1", secure=False).is_secure


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"endpoint": "ftp://x"}, "an endpoint is http://HOST:PORT, https://HOST:PORT or unix:/PATH"),
        ({"endpoint": "http://x/path"}, "an endpoint is"),
        ({"endpoint": "http://x:99999"}, "an endpoint is"),
        ({"endpoint": ""}, "an endpoint is"),
        ({"endpoint": "a b:1"}, "an endpoint is"),
        ({"endpoint": "http://u:p@x:1"}, "an endpoint has no user and no password in it"),
        ({"endpoint": "unix:relative"}, "a socket is unix: and an absolute path"),
        ({"endpoint": "http://x", "api_key": "a b"}, "the API key has characters no key has"),
        ({"endpoint": "http://x", "tls": TlsOptions()}, "tls goes with an https:// endpoint"),
        ({"endpoint": "http://x", "secure": True}, "tls goes with an https:// endpoint"),
        ({"endpoint": "unix:/x", "secure": True}, "tls goes with an https:// endpoint"),
        ({"endpoint": "https://x", "secure": False}, "secure=False does not go with an https:// endpoint"),
    ],
)
def test_a_mistake_is_refused_at_once(options: Dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=message):
        choose(**options)


def test_a_key_that_would_travel_in_the_clear_is_warned_about_once() -> None:
    with pytest.warns(UserWarning, match="the API key travels unencrypted to http://warned.example:1; use https://"):
        choose("http://warned.example:1", api_key="af_some")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for endpoint in ("http://warned.example:1", "https://x", "localhost:1", "127.0.0.1:1", "[::1]:1", "unix:/x"):
            choose(endpoint, api_key="af_some")


def test_a_proxy_is_for_other_machines() -> None:
    assert ("grpc.enable_http_proxy", 0) in channel_options(choose("localhost:1"))
    assert ("grpc.enable_http_proxy", 0) not in channel_options(choose("far.example:1"))


def test_the_key_is_in_every_call() -> None:
    assert call_metadata(choose("localhost:1", api_key="af_some")) == (("authorization", "Bearer af_some"),)
    assert call_metadata(choose("localhost:1")) == ()


# What failures mean.


def failure(code: grpc.StatusCode, message: str = "no", *details: Any, timeout: Optional[float] = None) -> Failure:
    trailing: Tuple[Tuple[str, bytes], ...] = ()
    if details:
        status = Status(code=code.value[0], message=message)
        for detail in details:
            packed = AnyMessage()
            packed.Pack(detail)
            status.details.append(packed)
        trailing = (("grpc-status-details-bin", status.SerializeToString()),)
    return Failure(code, message, trailing, PLACE, timeout)


@pytest.mark.parametrize("code", sorted(ERROR_CLASSES))
def test_the_code_of_the_registry_decides(code: str) -> None:
    info = ErrorInfo(domain="agentfense", reason=code, metadata={"hint": "do", "path": "/a"})
    error = sandbox_error(failure(grpc.StatusCode.INTERNAL, "no", info))
    assert type(error) is ERROR_CLASSES[code]
    assert (error.message, error.code, error.hint, error.details) == ("no", code, "do", {"path": "/a"})
    assert (error.retryable, error.grpc_code) == (code in RETRYABLE_CODES, "INTERNAL")


def test_a_code_of_a_newer_server_and_details_of_somebody_else() -> None:
    newer = ErrorInfo(domain="agentfense", reason="BRAND_NEW")
    error = sandbox_error(failure(grpc.StatusCode.NOT_FOUND, "no", newer))
    assert (type(error), error.code, error.details) == (SandboxError, "UNKNOWN", {"reason": "BRAND_NEW"})
    other = ErrorInfo(domain="googleapis.com", reason="FILE_NOT_FOUND")
    assert type(sandbox_error(failure(grpc.StatusCode.NOT_FOUND, "no", other))) is SandboxError


def test_the_output_of_a_command_that_ran_out_of_time_is_in_its_error() -> None:
    info = ErrorInfo(domain="agentfense", reason="COMMAND_TIMEOUT")
    result = sandbox_pb2.ExecResult(stdout="begun", timed_out=True, exit_code=137)
    error = sandbox_error(failure(grpc.StatusCode.DEADLINE_EXCEEDED, "late", info, result))
    assert isinstance(error, CommandTimeoutError)
    assert (error.stdout, error.exit_code, error.result.timed_out) == ("begun", 137, True)
    bare = sandbox_error(failure(grpc.StatusCode.DEADLINE_EXCEEDED, "late", info))
    assert isinstance(bare, CommandError)
    assert bare.result.timed_out


@pytest.mark.parametrize(
    ("code", "told", "message", "retryable"),
    [
        ("UNAVAILABLE", "connect: Connection refused (111)", f"nothing listens at {PLACE}", True),
        ("UNAVAILABLE", "Socket closed", f"the connection to {PLACE} was lost: Socket closed", True),
        ("UNAVAILABLE", "DNS resolution failed for x", f"there is no machine of that name: {PLACE}", False),
        (
            "UNAVAILABLE",
            "SSL: CERTIFICATE_VERIFY_FAILED",
            f"the certificate of {PLACE} is signed by nobody we know",
            False,
        ),
        ("UNAVAILABLE", "WRONG_VERSION_NUMBER", f"{PLACE} does not speak TLS", False),
        ("CANCELLED", "gone", f"the connection to {PLACE} was lost: gone", True),
        ("INTERNAL", "Received RST_STREAM with error code 2", None, True),
    ],
)
def test_a_lost_connection_is_explained(code: str, told: str, message: Optional[str], retryable: bool) -> None:
    error = sandbox_error(failure(grpc.StatusCode[code], told))
    assert isinstance(error, ConnectionError)
    assert error.message == (message or f"the connection to {PLACE} was lost: {told}")
    assert (error.code, error.retryable) == ("CONNECTION_FAILED", retryable)


def test_no_answer_in_time() -> None:
    late = sandbox_error(failure(grpc.StatusCode.DEADLINE_EXCEEDED, timeout=59.9999))
    assert (type(late), late.message) == (ConnectionError, f"no answer from {PLACE} within 60 s")
    assert sandbox_error(failure(grpc.StatusCode.DEADLINE_EXCEEDED)).message == f"no answer from {PLACE} in time"


# When a call is tried again.


def test_pauses_grow_and_half_of_each_is_chance() -> None:
    error = SandboxError("busy", retryable=True)
    assert [pause_before(attempt, error, lambda: 1.0) for attempt in range(6)] == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0]
    assert pause_before(0, error, lambda: 0.0) == 0.05
    assert pause_before(10**6, error, lambda: 1.0) == 2.0
    assert pause_before(0, SandboxError("wrong")) is None


def test_a_server_may_ask_for_a_longer_pause() -> None:
    def asking(milliseconds: str) -> SandboxError:
        return SandboxError("busy", retryable=True, details={"retry_after_ms": milliseconds})

    assert pause_before(0, asking("1500")) == 1.5
    assert pause_before(0, asking("11000")) is None
    assert pause_before(0, asking("nonsense"), lambda: 1.0) == 0.1


def test_a_deadline_is_for_all_attempts() -> None:
    now = 100.0
    deadline = Deadline(2.0, lambda: now)
    assert (deadline.left(), deadline.allows(1.9), deadline.allows(2.0)) == (2.0, True, False)
    now = 105.0
    assert deadline.left() == 0.001
    assert (Deadline(None).left(), Deadline(None).allows(1e9)) == (None, True)
