"""Secrets, with the values that are read for them. No error has anything of a value."""

from __future__ import annotations

import os
import subprocess
from typing import Any, List, Mapping, Optional, Sequence, Union

from agentfense._messages.time import moment
from agentfense._wire.sandbox.v1 import sandbox_pb2
from agentfense.exceptions import InvalidConfigurationError
from agentfense.types import SandboxSecret, SecretInfo, SecretsLike

_SOURCES = ("value", "from_env", "file", "command")


def secret_messages(secrets: Optional[SecretsLike]) -> List[sandbox_pb2.SandboxSecret]:
    """What a request says of secrets. It reads files and runs commands."""
    if secrets is None:
        return []
    if isinstance(secrets, Mapping):
        return [_secret_message(name, secret) for name, secret in secrets.items()]
    if isinstance(secrets, str):
        raise InvalidConfigurationError("secrets are a dict, or a list of the names of secrets that the server keeps")
    return [sandbox_pb2.SandboxSecret(name=name) for name in secrets]


def read_secret(name: str, secret: SandboxSecret) -> sandbox_pb2.SandboxSecret:
    """One with its value. Which hosts and places there can be says the server."""
    given: Any = secret
    if not isinstance(given, Mapping):
        raise InvalidConfigurationError(f'the secret {name} is a dict with a value and hosts, or "kept"')
    known = (*_SOURCES, "hosts", "in")
    odd = next((member for member in given if member not in known), None)
    if odd is not None:
        raise InvalidConfigurationError(f"the secret {name} has {odd}, which means nothing: {', '.join(known)} do")
    sources = [source for source in _SOURCES if given.get(source) is not None]
    if len(sources) != 1 or not isinstance(given[sources[0]], str):
        raise InvalidConfigurationError(f"the secret {name} has one of value, from_env, file and command, as a text")
    hosts: Optional[Sequence[str]] = given.get("hosts")
    if not hosts or isinstance(hosts, str):
        raise InvalidConfigurationError(f"the secret {name} needs hosts that it may be sent to: a list of names")
    place = given.get("in")
    if not isinstance(place, str):
        raise InvalidConfigurationError(
            f'the secret {name} needs in: "header NAME", "bearer", "basic", "query KEY" or "body"'
        )
    value = _read_value(name, sources[0], given[sources[0]])
    return sandbox_pb2.SandboxSecret(name=name, value=value, hosts=hosts, place=place)


def secret_of(message: sandbox_pb2.Secret) -> SecretInfo:
    """A secret of an answer."""
    return SecretInfo(
        name=message.name,
        owner_id=message.owner_id,
        hosts=tuple(message.hosts),
        place=message.place,
        created_at=moment(message.created_at),
        updated_at=moment(message.updated_at),
    )


def _secret_message(name: str, secret: Union[SandboxSecret, str]) -> sandbox_pb2.SandboxSecret:
    if isinstance(secret, str) and secret == "kept":
        return sandbox_pb2.SandboxSecret(name=name)
    return read_secret(name, secret)  # type: ignore[arg-type]


def _read_value(name: str, source: str, given: str) -> str:
    if source == "value":
        return given
    if source == "from_env":
        value = os.environ.get(given, "")
        if value == "":
            raise InvalidConfigurationError(f"the secret {name} has no value: the variable {given} is not set here")
        return value
    if source == "file":
        try:
            with open(given, encoding="utf-8", newline="") as file:
                return _without_line_end(file.read())
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise InvalidConfigurationError(f"the secret {name} cannot be read from {given}: {reason}") from None
    done = subprocess.run(["/bin/sh", "-c", given], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        # What it printed may be the secret.
        raise InvalidConfigurationError(f"the command that prints the secret {name} failed")
    return _without_line_end(done.stdout.decode("utf-8", "replace"))


def _without_line_end(text: str) -> str:
    return text[:-2] if text.endswith("\r\n") else text[:-1] if text.endswith("\n") else text
