"""A directory of this machine as the ground of a sandbox: where it really is, and what its policy says."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Sequence, Union

from agentfense._project import read_project_policy, with_project_policy
from agentfense._sandbox.options import SandboxOptions, UploadOptions
from agentfense.exceptions import InvalidConfigurationError
from agentfense.types import SyncMode


@dataclass(frozen=True)
class Project:
    """What is known of a directory before anything is sent."""

    #: Absolute and real.
    top: str
    #: Of the sandbox, with what the policy adds to them.
    options: SandboxOptions
    #: What stays behind, in the words of .gitignore: the policy's, then the caller's.
    ignore: Sequence[str]

    @property
    def name(self) -> str:
        """Of the directory."""
        return os.path.basename(self.top) or "root"


def read_project(directory: Union[str, os.PathLike[str]], options: SandboxOptions, upload: UploadOptions) -> Project:
    """Looks at a directory. Changes of a sandbox on it wait until they are applied, unless somebody says otherwise."""
    top = _real_directory(os.fspath(directory))
    policy = read_project_policy(top) if upload.policy else None
    taken = with_project_policy(
        policy,
        preset=options.preset,
        permissions=options.permissions,
        runtime=options.runtime,
        network=options.network,
        resources=options.resources,
        env=options.env,
    )
    combined = replace(
        options,
        preset=None,
        permissions=taken.permissions,
        runtime=taken.runtime,
        network=taken.network,
        resources=taken.resources,
        env=taken.env,
        sync=SyncMode.MANUAL if options.sync is None else options.sync,
    )
    ignored = () if policy is None or policy.ignore is None else policy.ignore
    return Project(top, combined, [*ignored, *upload.ignore])


def _real_directory(directory: str) -> str:
    """No part of it is a link: what is written there later must not depend on where one leads by then."""
    # For pathlib that is the working directory, and nobody means to upload that.
    if directory == "":
        raise InvalidConfigurationError("the directory has no name")
    try:
        top = Path(directory).resolve(strict=True)
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidConfigurationError(f"{directory} cannot be opened ({reason})") from error
    if not top.is_dir():
        raise InvalidConfigurationError(f"{directory} is not a directory")
    return str(top)
