"""Codebases, their files and their versions."""

from __future__ import annotations

from agentfense._messages.time import moment
from agentfense._messages.words import CHANGE_KINDS, PERMISSIONS, VERSION_ORIGINS
from agentfense._wire.sandbox.v1 import codebase_pb2, common_pb2
from agentfense.types import (
    BatchResult,
    Codebase,
    EntryKind,
    FileInfo,
    UploadResult,
    Version,
    VersionChange,
    VersionConflict,
)


def codebase_of(message: codebase_pb2.Codebase) -> Codebase:
    """A codebase of an answer."""
    return Codebase(
        id=message.id,
        name=message.name,
        owner_id=message.owner_id,
        size=message.size,
        file_count=message.file_count,
        version=message.version,
        created_at=moment(message.created_at),
        updated_at=moment(message.updated_at),
    )


def file_info_of(message: codebase_pb2.FileInfo, with_attributes: bool = False) -> FileInfo:
    """A file of a codebase or of a view. What is hidden is not listed, so that a level is not always there."""
    has_level = message.permission != common_pb2.PERMISSION_UNSPECIFIED
    return FileInfo(
        path=message.path,
        name=message.name,
        kind=_kind_of(message),
        size=message.size,
        mode=message.mode,
        modified_at=moment(message.modified_at),
        target=message.symlink_target,
        sha256=message.checksum,
        permission=PERMISSIONS.word(message.permission) if has_level else None,
        attributes=dict(message.attributes) if with_attributes else None,
    )


def _kind_of(message: codebase_pb2.FileInfo) -> EntryKind:
    if message.is_dir:
        return EntryKind.DIRECTORY
    return EntryKind.FILE if message.symlink_target == "" else EntryKind.SYMLINK


def upload_result_of(message: codebase_pb2.UploadResult) -> UploadResult:
    """What came of uploading one file."""
    return UploadResult(path=message.file_path, size=message.size, sha256=message.checksum, version=message.version)


def batch_result_of(message: codebase_pb2.BatchUploadResult) -> BatchResult:
    """What came of changing many."""
    return BatchResult(
        version=message.version, files_changed=message.files_changed, bytes_received=message.bytes_received
    )


def version_of(message: codebase_pb2.Version) -> Version:
    """A version, with its changes where the server tells them."""
    return Version(
        codebase_id=message.codebase_id,
        version=message.version,
        origin=VERSION_ORIGINS.word(message.origin),
        sandbox_id=message.sandbox_id,
        message=message.message,
        created_at=moment(message.created_at),
        files_changed=message.files_changed,
        size=message.size,
        file_count=message.file_count,
        changes=tuple(
            VersionChange(
                kind=CHANGE_KINDS.word(change.kind), path=change.path, size=change.size, sensitive=change.sensitive
            )
            for change in message.changes
        ),
        conflicts=tuple(
            VersionConflict(
                path=conflict.path,
                replaced_version=conflict.replaced_version,
                replaced_sandbox_id=conflict.replaced_sandbox_id,
            )
            for conflict in message.conflicts
        ),
    )
