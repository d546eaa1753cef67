"""Searching, for models."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional

from agentfense._async.sandbox import AsyncSandbox
from agentfense._async.tools.context import AsyncToolContext
from agentfense._tools.bounds import clip, keep_lines
from agentfense._tools.declaration import SEARCH_RESULTS
from agentfense._tools.failure import ToolFailure
from agentfense._tools.grep import (
    Findings,
    Match,
    grep_command,
    is_worth_reading,
    knows_options,
    matches_in,
    matches_of_plain_text,
)
from agentfense.exceptions import SandboxError
from agentfense.types import ExecResult, FileInfo

_LINE_CHARACTERS = 500
_MOST_MATCHES = 10_000


async def search(given: Mapping[str, Any], context: AsyncToolContext) -> str:
    """Looks for a pattern in files."""
    findings = await _find(context.sandbox, given["pattern"], given.get("path", "/"))
    wanted = given.get("max_results", SEARCH_RESULTS)
    lines = [f"{match.path}:{match.line}:{clip(match.text, _LINE_CHARACTERS)}" for match in findings.matches[:wanted]]
    if len(findings.matches) > wanted:
        lines.append(f"[{len(findings.matches) - wanted} more matches]")
    if findings.remark is not None:
        lines.append(f"[{findings.remark}]")
    return keep_lines([*([] if findings.matches else ["(no matches)"]), *lines], context.max_output, "search for less")


async def _find(sandbox: AsyncSandbox, pattern: str, path: str) -> Findings:
    """Searches with the sandbox's own grep; where it has none, by reading the files."""
    start = await sandbox.files.stat(path)
    result = await _run_grep(sandbox, pattern, path)
    if result is None:
        return await _read_all(sandbox, pattern, start)
    matches = matches_in(result.stdout)
    if not matches and result.exit_code > 1 and result.stderr:
        raise ToolFailure(result.stderr.strip())
    is_incomplete = result.truncated or result.timed_out
    return Findings(matches, "there may be more: the search was cut short" if is_incomplete else None)


async def _run_grep(sandbox: AsyncSandbox, pattern: str, path: str) -> Optional[ExecResult]:
    """Gives None where there is no grep that knows these options."""
    try:
        result = await sandbox.run(grep_command(pattern, path))
    except SandboxError as error:
        if error.code != "PROGRAM_NOT_FOUND":
            raise
        return None
    return result if knows_options(result) else None


async def _read_all(sandbox: AsyncSandbox, pattern: str, start: FileInfo) -> Findings:
    """The same by the file API.

    The pattern is the model's and this process is not the sandbox: a regular expression could keep it busy for ever, so
    only plain text is looked for.
    """
    entries = [start]
    if not start.is_file:
        entries = await sandbox.files.readdir(start.path, recursive=True, with_file_types=True)
    matches: List[Match] = []
    for entry in filter(is_worth_reading, entries):
        if len(matches) >= _MOST_MATCHES:
            break
        matches.extend(matches_of_plain_text(pattern, entry, await sandbox.files.read_file(entry.path)))
    return Findings(matches, "there is no grep in the sandbox: this was searched for as plain text")
