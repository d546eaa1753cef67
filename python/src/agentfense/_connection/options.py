"""What a channel of gRPC is made with, in both faces."""

from __future__ import annotations

from typing import List, Optional, Tuple, Union

import grpc

from agentfense._connection.endpoint import Endpoint

Metadata = Tuple[Tuple[str, str], ...]

_OPTIONS: List[Tuple[str, Union[str, int]]] = [
    # Results and lists may be large; the server has limits of its own.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # A peer that vanished without a word is noticed by unanswered pings, which streams without a deadline rely on.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 15_000),
    ("grpc.http2.max_pings_without_data", 0),
    # A server that comes back is found soon.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
]


def channel_options(endpoint: Endpoint) -> List[Tuple[str, Union[str, int]]]:
    """The options of a channel. A proxy is for other machines."""
    return [*_OPTIONS, ("grpc.enable_http_proxy", 0)] if endpoint.is_local else _OPTIONS


def channel_credentials(endpoint: Endpoint) -> Optional[grpc.ChannelCredentials]:
    """What TLS needs; None without."""
    if not endpoint.is_secure:
        return None
    tls = endpoint.tls
    if tls is None:
        return grpc.ssl_channel_credentials()
    return grpc.ssl_channel_credentials(_pem(tls.ca), _pem(tls.key), _pem(tls.cert))


def call_metadata(endpoint: Endpoint) -> Metadata:
    """What every call carries."""
    return () if endpoint.api_key is None else (("authorization", f"Bearer {endpoint.api_key}"),)


def _pem(text: Union[str, bytes, None]) -> Optional[bytes]:
    return text.encode() if isinstance(text, str) else text
