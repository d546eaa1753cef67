"""What is told to a model instead of ending its loop."""

from __future__ import annotations

from agentfense.exceptions import SandboxError

#: Codes of what a model can act on.
_TOLD = frozenset(
    {
        "INVALID_ARGUMENT",
        "FILE_NOT_FOUND",
        "FILE_PERMISSION_DENIED",
        "FILE_EXISTS",
        "FILE_WRONG_KIND",
        "WORKDIR_UNUSABLE",
        "PROGRAM_NOT_FOUND",
        "LIMIT_EXCEEDED",
    }
)


class ToolFailure(Exception):
    """What a model can do something about: it is told, instead of ending its loop."""


def text_for_model(error: Exception) -> str:
    """What to tell the model of a failure; one that is not for it is raised again."""
    if isinstance(error, ToolFailure) or (isinstance(error, SandboxError) and error.code in _TOLD):
        return str(error)
    raise error
