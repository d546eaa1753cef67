"""Who codebases belong to where no API key says it."""

from __future__ import annotations

import getpass


def user_name() -> str:
    """Gives the user of this process. One in a container may be a user that nobody knows."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return "local"
