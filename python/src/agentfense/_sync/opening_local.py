# Generated from src/agentfense/_async/opening_local.py by scripts/generate_sync.py: change it there.
"""How a sandbox on a directory of this machine comes to be."""

from __future__ import annotations

from agentfense._face.sync_face import called_here, run_blocking
from agentfense._local_copy import LocalCopy
from agentfense._sandbox.options import CodebaseOptions, UploadOptions
from agentfense._sandbox.project import Project
from agentfense._sync.client import SandboxClient
from agentfense._sync.local_directory import LocalDirectory
from agentfense._sync.opening import Ground, LayGround, own_codebase
from agentfense._sync.undo import Undo
from agentfense._upload import Selection, select_entries


def directory_ground(project: Project, codebase: CodebaseOptions, upload: UploadOptions) -> LayGround:
    """A copy of a directory, which goes with the sandbox."""

    def lay(client: SandboxClient, undo: Undo) -> Ground:
        selection = _select(project, upload)
        codebase_id = own_codebase(
            client, undo, project.name if codebase.name is None else codebase.name, codebase.owner_id
        )
        client._upload_selection(codebase_id, selection, on_progress=upload.on_progress)
        copy = LocalCopy(project.top, selection.entries)
        return Ground(codebase_id, is_own=True, local_directory=LocalDirectory(client, codebase_id, copy))

    return lay


def _select(project: Project, upload: UploadOptions) -> Selection:
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

    return run_blocking(select)
