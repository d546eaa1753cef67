"""The paths of a workspace, in the form that calls take them."""

from __future__ import annotations

from typing import List

_WORKSPACE = "/workspace"


def workspace_path(path: str) -> str:
    """Gives a path of the workspace as calls take it: "src/a.py", "/" for the workspace itself.

    Without the slash in front, a directory that is called "workspace" is not taken for the workspace.
    """
    if path == "":
        return ""
    is_absolute = path == _WORKSPACE or path.startswith(f"{_WORKSPACE}/")
    names = names_in(path[len(_WORKSPACE) :] if is_absolute else path)
    return "/".join(names) if names else "/"


def names_in(path: str) -> List[str]:
    """Gives the names of such a path, none for the workspace. What leads up is left for the server to refuse."""
    return [name for name in path.split("/") if name not in ("", ".")]
