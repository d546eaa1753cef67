"""A gRPC server of this process that does what no real one can be made to do: hang, be busy twice, talk nonsense."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Mapping, Optional

import grpc

from agentfense._connection.method import Method

Behaviour = Callable[[Any, grpc.ServicerContext], Any]
Handlers = Mapping[str, "grpc.RpcMethodHandler[Any, Any]"]


def unary(method: Method[Any, Any], answer: Behaviour) -> Handlers:
    """One method that answers once. Requests are not looked into."""
    return {method.path: grpc.unary_unary_rpc_method_handler(answer, None, _bytes_of)}


def streaming(method: Method[Any, Any], answers: Behaviour) -> Handlers:
    """One method that answers many times."""
    return {method.path: grpc.unary_stream_rpc_method_handler(answers, None, _bytes_of)}


def uploading(method: Method[Any, Any], answer: Behaviour) -> Handlers:
    """One method that takes many messages."""
    return {method.path: grpc.stream_unary_rpc_method_handler(answer, None, _bytes_of)}


@contextmanager
def fake_server(handlers: Handlers, address: str = "127.0.0.1:0") -> Iterator[str]:
    """Listens until the end of the block, and gives its endpoint."""
    with ThreadPoolExecutor(4) as threads:
        server = grpc.server(threads)
        server.add_generic_rpc_handlers([_Handlers(handlers)])
        port = server.add_insecure_port(address)
        server.start()
        try:
            yield address if address.startswith("unix:") else f"127.0.0.1:{port}"
        finally:
            server.stop(None).wait()


class _Handlers(grpc.GenericRpcHandler):
    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Optional[grpc.RpcMethodHandler[Any, Any]]:
        return self._handlers.get(handler_call_details.method)


def _bytes_of(message: Any) -> bytes:
    serialized: bytes = message.SerializeToString()
    return serialized
