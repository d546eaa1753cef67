# Generated from src/agentfense/_async/tools/files.py by scripts/generate_sync.py: change it there.
"""Files, for models."""

from __future__ import annotations

from typing import Any, Mapping

from agentfense._sync.files import SandboxFiles
from agentfense._sync.tools.context import ToolContext
from agentfense._tools.bounds import keep_lines
from agentfense._tools.declaration import READ_LINES
from agentfense._tools.failure import ToolFailure
from agentfense._tools.line_window import LineWindow
from agentfense.exceptions import FileNotFoundError
from agentfense.types import FileInfo

_LARGEST_EDITED_BYTES = 10 * 1024 * 1024


def read_file(given: Mapping[str, Any], context: ToolContext) -> str:
    """Reads lines of a file, and fetches no more of it than that takes."""
    first = given.get("offset", 1)
    window = LineWindow(first, first + given.get("limit", READ_LINES) - 1, context.max_output)
    for piece in context.sandbox.files.read_stream(given["path"]):
        if window.add(piece):
            break
    return window.end(given["path"])


def write_file(given: Mapping[str, Any], context: ToolContext) -> str:
    """Writes a file and, where they are missing, the directories on its way."""
    path, content, files = given["path"], given["content"], context.sandbox.files
    with context.turn:
        try:
            files.write_file(path, content)
        except FileNotFoundError:
            parent = path[: path.rfind("/") + 1]
            if parent.strip("/") == "":
                raise
            files.mkdir(parent, recursive=True)
            files.write_file(path, content)
    return f"wrote {path}"


def edit_file(given: Mapping[str, Any], context: ToolContext) -> str:
    """Replaces text in a file that is UTF-8."""
    path = given["path"]
    with context.turn:
        parts = _text_of(context.sandbox.files, path).split(given["old_text"])
        count = len(parts) - 1
        if count == 0:
            raise ToolFailure(f"the old text is not in {path}: it must be there exactly as given")
        if count > 1 and not given.get("replace_all", False):
            advice = "give more of what is around it, or replace all"
            raise ToolFailure(f"the old text is in {path} {count} times: {advice}")
        if count * len(given["new_text"]) > _LARGEST_EDITED_BYTES:
            raise ToolFailure(f"{path} would become too large")
        context.sandbox.files.write_file(path, given["new_text"].join(parts))
    return f"edited {path}" if count == 1 else f"edited {path} in {count} places"


def list_files(given: Mapping[str, Any], context: ToolContext) -> str:
    """Lists a directory."""
    recursive = given.get("recursive", False)
    entries = context.sandbox.files.readdir(given.get("path", "/"), recursive=recursive, with_file_types=True)
    if not entries:
        return "(nothing)"
    return keep_lines([_line_for(entry) for entry in entries], context.max_output, "list a directory below")


def _text_of(files: SandboxFiles, path: str) -> str:
    """Gives the text of a file; what is not UTF-8 would not survive being written back."""
    if files.stat(path).size > _LARGEST_EDITED_BYTES:
        raise ToolFailure(f"{path} is too large to be edited in this way")
    try:
        return files.read_file(path, "utf-8")
    except UnicodeDecodeError:
        raise ToolFailure(f"{path} is no UTF-8 text") from None


def _line_for(entry: FileInfo) -> str:
    ending = f" -> {entry.target}" if entry.is_symlink else "/" if entry.is_dir else ""
    return entry.path[1:] + ending
