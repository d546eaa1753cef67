"""The exceptions that callers see, for whatever a call of gRPC failed with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Iterable, List, Optional, Tuple, Type, Union

import grpc
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from agentfense._messages.command import exec_result_of
from agentfense._wire.sandbox.v1 import sandbox_pb2
from agentfense.exceptions import (
    ERROR_CLASSES,
    RETRYABLE_CODES,
    AuthenticationError,
    CommandError,
    ConnectionError,
    InvalidConfigurationError,
    PermissionDeniedError,
    ResourceLimitExceededError,
    SandboxError,
)

_ERROR_DOMAIN = "agentfense"
_DETAILS_KEY = "grpc-status-details-bin"


@dataclass(frozen=True)
class Failure:
    """How a call ended, as gRPC tells it."""

    code: grpc.StatusCode
    message: str
    trailing: Tuple[Tuple[str, Union[str, bytes]], ...]
    #: The server that was asked.
    place: str
    #: How long we were willing to wait.
    timeout: Optional[float] = None


def failure_of(error: Any, place: str, timeout: Optional[float]) -> Failure:
    """The same for an error of either face of gRPC, which have the same methods and no type in common."""
    trailing: Iterable[Tuple[str, Union[str, bytes]]] = error.trailing_metadata() or ()
    code = error.code() or grpc.StatusCode.UNKNOWN
    return Failure(code, error.details() or "", tuple(trailing), place, timeout)


def sandbox_error(failure: Failure) -> SandboxError:
    """The exception for a failed call."""
    return _from_server(failure) or _from_connection(failure) or _from_status(failure)


def closed_error() -> ConnectionError:
    """For calls of a client that was closed."""
    return ConnectionError("the client is closed", code="CONNECTION_FAILED")


# What the server said of its own accord: the code of its registry decides.


def _from_server(failure: Failure) -> Optional[SandboxError]:
    status = _status_of(failure)
    info = _error_info(status)
    if status is None or info is None:
        return None
    details = dict(info.metadata)
    hint = details.pop("hint", None)
    grpc_code = failure.code.name
    error_class = ERROR_CLASSES.get(info.reason)
    if error_class is None:
        # A server that is newer than this client may know of more.
        details["reason"] = info.reason
        return SandboxError(failure.message, hint=hint, details=details, grpc_code=grpc_code)
    error = error_class(
        failure.message,
        code=info.reason,
        retryable=info.reason in RETRYABLE_CODES,
        hint=hint,
        details=details,
        grpc_code=grpc_code,
    )
    if isinstance(error, CommandError):
        _add_result(error, status)
    return error


def _status_of(failure: Failure) -> Optional[Status]:
    for key, value in failure.trailing:
        if key == _DETAILS_KEY and isinstance(value, bytes):
            status = Status()
            status.ParseFromString(value)
            return status
    return None


def _error_info(status: Optional[Status]) -> Optional[ErrorInfo]:
    for detail in status.details if status is not None else ():
        info = ErrorInfo()
        if detail.Unpack(info) and info.domain == _ERROR_DOMAIN:
            return info
    return None


def _add_result(error: CommandError, status: Status) -> None:
    """What there was of output travels in the details of the error."""
    for detail in status.details:
        result = sandbox_pb2.ExecResult()
        if detail.Unpack(result):
            error.result = exec_result_of(result, "")


# What gRPC itself says of a connection.

# Statuses that no server of ours sends without its ErrorInfo: the connection was lost, or never there.
_LOST = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.ABORTED})
_CUT_OFF = re.compile(r"RST_STREAM|GOAWAY|Stream removed|Socket closed", re.IGNORECASE)


@dataclass(frozen=True)
class _Reason:
    pattern: str
    #: With the place for {}.
    message: str
    retryable: bool
    hint: Optional[str] = None


# Reasons that have a better explanation than their own.
_REASONS: List[_Reason] = [
    _Reason(
        r"CERTIFICATE_VERIFY_FAILED|certificate verify failed",
        "the certificate of {} is signed by nobody we know",
        False,
        "give the right ones as TlsOptions(ca=…)",
    ),
    _Reason(r"Peer name .* is not in peer certificate", "the certificate of {} is for another name", False),
    _Reason(r"WRONG_VERSION_NUMBER|HTTP_REQUEST", "{} does not speak TLS", False, "use http://"),
    _Reason(
        r"Connection refused|No such file or directory|ENOENT", "nothing listens at {}", True, "is the server running?"
    ),
    _Reason(r"DNS resolution failed|Domain name not found|C-ares", "there is no machine of that name: {}", False),
]


def _from_connection(failure: Failure) -> Optional[SandboxError]:
    place = failure.place
    grpc_code = failure.code.name
    if failure.code is grpc.StatusCode.DEADLINE_EXCEEDED:
        waited = "in time" if failure.timeout is None else f"within {round(failure.timeout, 1):g} s"
        return _lost(f"no answer from {place} {waited}", True, None, grpc_code)
    is_lost = failure.code in _LOST or _CUT_OFF.search(failure.message) is not None
    if not is_lost:
        return None
    for reason in _REASONS:
        if re.search(reason.pattern, failure.message) is not None:
            return _lost(reason.message.format(place), reason.retryable, reason.hint, grpc_code)
    return _lost(f"the connection to {place} was lost: {failure.message}", True, None, grpc_code)


def _lost(message: str, retryable: bool, hint: Optional[str], grpc_code: str) -> ConnectionError:
    return ConnectionError(message, code="CONNECTION_FAILED", retryable=retryable, hint=hint, grpc_code=grpc_code)


# A status without details: of a proxy in between, or of a server that is not ours.

_STATUS_CLASSES: List[Tuple[grpc.StatusCode, Type[SandboxError], str]] = [
    (grpc.StatusCode.INVALID_ARGUMENT, InvalidConfigurationError, "INVALID_ARGUMENT"),
    (grpc.StatusCode.UNAUTHENTICATED, AuthenticationError, "UNAUTHENTICATED"),
    (grpc.StatusCode.PERMISSION_DENIED, PermissionDeniedError, "UNKNOWN"),
    (grpc.StatusCode.RESOURCE_EXHAUSTED, ResourceLimitExceededError, "UNKNOWN"),
]


def _from_status(failure: Failure) -> SandboxError:
    for status, error_class, code in _STATUS_CLASSES:
        if failure.code is status:
            return error_class(failure.message, code=code, grpc_code=failure.code.name)
    return SandboxError(failure.message, grpc_code=failure.code.name)
