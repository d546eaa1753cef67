"""Where a server is, and how to convince it and ourselves."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Mapping, Optional, Set
from urllib.parse import SplitResult, urlsplit

from agentfense.exceptions import InvalidConfigurationError
from agentfense.types import TlsOptions

_DEFAULT_PORTS = {"http": 80, "https": 443}
_NAME_HINT = "endpoint=…, or AGENTFENSE_ENDPOINT; only from_local() and create() start a server of their own"


@dataclass(frozen=True)
class Endpoint:
    """A server, by its address."""

    #: "https://host:9000" or "unix:/path": what errors call it.
    name: str
    #: The same in the words of gRPC.
    target: str
    is_secure: bool
    #: Nobody in between can listen.
    is_local: bool
    api_key: Optional[str] = None
    tls: Optional[TlsOptions] = None


def choose_endpoint(
    endpoint: Optional[str],
    secure: Optional[bool],
    api_key: Optional[str],
    tls: Optional[TlsOptions],
    environment: Mapping[str, str],
) -> Endpoint:
    """What was asked for, else the environment. No address is assumed: whoever got there first would be trusted."""
    text = endpoint if endpoint is not None else environment.get("AGENTFENSE_ENDPOINT") or None
    if text is None:
        raise InvalidConfigurationError("no server is named", hint=_NAME_HINT)
    key = api_key if api_key is not None else environment.get("AGENTFENSE_API_KEY") or None
    # The key itself is in no message: those end in logs.
    if key is not None and re.fullmatch(r"[\x21-\x7e]+", key) is None:
        raise InvalidConfigurationError("the API key has characters no key has")
    chosen = _unix(text, key) if text.startswith("unix:") else _network(text, secure, key, tls)
    if not chosen.is_secure and (tls is not None or secure is True):
        raise InvalidConfigurationError("tls goes with an https:// endpoint")
    if chosen.api_key is not None and not chosen.is_secure and not chosen.is_local:
        _warn_once(f"the API key travels unencrypted to {chosen.name}; use https://")
    return chosen


def _unix(text: str, api_key: Optional[str]) -> Endpoint:
    path = re.sub(r"^unix:(//)?", "", text)
    if not path.startswith("/"):
        raise InvalidConfigurationError(f"a socket is unix: and an absolute path, not {text!r}")
    return Endpoint(name=f"unix:{path}", target=f"unix:{path}", is_secure=False, is_local=True, api_key=api_key)


def _network(text: str, secure: Optional[bool], api_key: Optional[str], tls: Optional[TlsOptions]) -> Endpoint:
    """A URL, or HOST:PORT as the clients of the earlier server wrote it."""
    has_scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text) is not None
    is_secure = secure is True or (secure is None and tls is not None)
    url = _parsed(text if has_scheme else f"{'https' if is_secure else 'http'}://{text}", text)
    if url.username is not None or url.password is not None:
        raise InvalidConfigurationError("an endpoint has no user and no password in it")
    if secure is False and url.scheme == "https":
        raise InvalidConfigurationError("secure=False does not go with an https:// endpoint")
    host = url.hostname or ""
    address = f"{f'[{host}]' if ':' in host else host}:{url.port or _DEFAULT_PORTS[url.scheme]}"
    return Endpoint(
        name=f"{url.scheme}://{address}",
        target=f"dns:{address}",
        is_secure=url.scheme == "https",
        is_local=_is_this_machine(host),
        api_key=api_key,
        tls=tls,
    )


def _parsed(url: str, text: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        is_right = parts.scheme in _DEFAULT_PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_right = False
    else:
        rest = parts.path + parts.query + parts.fragment
        if is_right and rest in ("", "/") and re.search(r"\s", parts.netloc) is None:
            return parts
    raise InvalidConfigurationError(f"an endpoint is http://HOST:PORT, https://HOST:PORT or unix:/PATH, not {text!r}")


def _is_this_machine(host: str) -> bool:
    return host in ("localhost", "::1") or re.fullmatch(r"127(\.\d+){3}", host) is not None


_warned: Set[str] = set()


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, stacklevel=5)
