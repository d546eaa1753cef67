"""Finds and reads the policy file of a project."""

from __future__ import annotations

import os
import stat
from typing import Optional, Union

from agentfense._project.errors import ProjectPolicyError, YamlError
from agentfense._project.policy import ProjectPolicy
from agentfense._project.schema import ContentError, read_policy_content
from agentfense._project.text_file import TextFileError, read_found_text_file
from agentfense._project.yaml_text import parse_yaml

#: The policy file of a project, in its top directory.
POLICY_FILE = ".agentfense.yaml"

#: Spellings that somebody will try; a policy that is silently not read is a hole.
_MISSPELT = (".agentfense.yml", "agentfense.yaml", "agentfense.yml")


def read_project_policy(directory: Union[str, os.PathLike[str]]) -> Optional[ProjectPolicy]:
    """What `.agentfense.yaml` in a directory says; None when there is none.

    It may come from strangers: no link is followed to it, it has at most 1 MiB, and what is not understood is an error
    (a `ProjectPolicyError` with file, line and column), never skipped.
    """
    path = os.path.join(directory, POLICY_FILE)
    try:
        text = read_found_text_file(path)
    except (FileNotFoundError, NotADirectoryError):
        _refuse_misspelt(os.fspath(directory))
        return None
    except TextFileError as error:
        raise ProjectPolicyError(path, str(error)) from error
    except OSError as error:
        raise ProjectPolicyError(path, f"cannot be read ({error.strerror})") from error
    return parse_project_policy(text, path)


def parse_project_policy(text: str, path: str) -> ProjectPolicy:
    """The same for a text that is, or will be, in the file `path`."""
    try:
        yaml = parse_yaml(text)
    except YamlError as error:
        raise ProjectPolicyError(path, str(error), place=error.place) from error
    try:
        return read_policy_content(yaml.value, path)
    except ContentError as error:
        place = yaml.place_of(error.at, error.part)
        raise ProjectPolicyError(path, str(error), place=place) from error


def _refuse_misspelt(directory: str) -> None:
    for name in _MISSPELT:
        path = os.path.join(directory, name)
        try:
            is_file = stat.S_ISREG(os.lstat(path).st_mode)
        except OSError:
            continue
        if is_file:
            raise ProjectPolicyError(
                path, f"is not read; the file is called {POLICY_FILE}", hint=f"rename it to {POLICY_FILE}"
            )
