"""What sandboxes are opened with, in the groups in which it is passed on."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Callable, Mapping, Optional, Sequence, Union

from agentfense.types import (
    NetworkList,
    NetworkMode,
    ResourceLimits,
    RuleLike,
    RuntimeType,
    Seconds,
    SecretsLike,
    SyncMode,
    TlsOptions,
    UploadProgress,
)


@dataclass(frozen=True)
class ServerOptions:
    """How a server is reached."""

    endpoint: Optional[str] = None
    secure: Optional[bool] = None
    api_key: Optional[str] = None
    tls: Optional[TlsOptions] = None
    request_timeout: Optional[Seconds] = 60.0
    retries: int = 3

    @property
    def names_no_server(self) -> bool:
        """Whether neither the caller nor the environment means a certain one. Who says how to reach it, does."""
        says_how = self.secure is True or self.tls is not None or self.api_key is not None
        return self.endpoint is None and not says_how and not os.environ.get("AGENTFENSE_ENDPOINT")


@dataclass(frozen=True)
class SandboxOptions:
    """What a sandbox is made with, besides its codebase."""

    preset: Optional[str] = None
    permissions: Optional[Sequence[RuleLike]] = None
    runtime: Union[RuntimeType, str, None] = None
    image: Optional[str] = None
    resources: Optional[ResourceLimits] = None
    network: Union[NetworkMode, NetworkList, str, None] = None
    sync: Union[SyncMode, str, None] = None
    env: Optional[Mapping[str, str]] = None
    labels: Optional[Mapping[str, str]] = None
    expires_in: Optional[Seconds] = None
    revocable: bool = False
    idle_pause: Optional[Seconds] = None
    home: Union[str, os.PathLike[str], None] = None
    secrets: Optional[SecretsLike] = None


@dataclass(frozen=True)
class CodebaseOptions:
    """What a codebase is made with, where one is made."""

    name: Optional[str] = None
    owner_id: Optional[str] = None


@dataclass(frozen=True)
class UploadOptions:
    """How a directory becomes a codebase."""

    ignore_files: bool = True
    ignore: Sequence[str] = ()
    include_git: bool = False
    skip_unreadable: bool = False
    on_progress: Optional[Callable[[UploadProgress], None]] = None
    # Whether what `.agentfense.yaml` in the directory says counts.
    policy: bool = True
