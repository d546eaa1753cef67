"""What `.agentfense.yaml` can say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Optional, Tuple, Union

from agentfense.types import NetworkList, NetworkMode, PermissionRule, ResourceLimits, RuntimeType


@dataclass(frozen=True)
class ProjectPolicy:
    """None is what it does not say."""

    #: Of the file: the directory as it was given, and the name.
    path: str
    preset: Optional[str] = None
    #: With a preset: after its rules. Without: exactly these.
    permissions: Optional[Tuple[PermissionRule, ...]] = None
    runtime: Optional[RuntimeType] = None
    #: A word, or the list of a filtered one.
    network: Union[NetworkMode, NetworkList, None] = None
    resources: Optional[ResourceLimits] = None
    env: Optional[Mapping[str, str]] = None
    #: Left out of uploads, as in .gitignore.
    ignore: Optional[Tuple[str, ...]] = None
