"""How a sandbox on a directory of this machine comes to be."""

from __future__ import annotations

from agentfense._async.client import AsyncSandboxClient
from agentfense._async.local_directory import AsyncLocalDirectory
from agentfense._async.opening import AsyncGround, AsyncLayGround, own_codebase
from agentfense._async.undo import AsyncUndo
from agentfense._face.async_face import called_here, run_blocking
from agentfense._local_copy import LocalCopy
from agentfense._sandbox.options import CodebaseOptions, UploadOptions
from agentfense._sandbox.project import Project
from agentfense._upload import Selection, select_entries


def directory_ground(project: Project, codebase: CodebaseOptions, upload: UploadOptions) -> AsyncLayGround:
    """A copy of a directory, which goes with the sandbox."""

    async def lay(client: AsyncSandboxClient, undo: AsyncUndo) -> AsyncGround:
        selection = await _select(project, upload)
        codebase_id = await own_codebase(
            client, undo, project.name if codebase.name is None else codebase.name, codebase.owner_id
        )
        await client._upload_selection(codebase_id, selection, on_progress=upload.on_progress)
        copy = LocalCopy(project.top, selection.entries)
        return AsyncGround(codebase_id, is_own=True, local_directory=AsyncLocalDirectory(client, codebase_id, copy))

    return lay


async def _select(project: Project, upload: UploadOptions) -> Selection:
    on_progress = None if upload.on_progress is None else called_here(upload.on_progress)

    def select() -> Selection:
        return select_entries(
            project.top,
            ignore_files=upload.ignore_files,
            ignore=project.ignore,
            include_git=upload.include_git,
            skip_unreadable=upload.skip_unreadable,
            on_progress=on_progress,
        )

    return await run_blocking(select)
