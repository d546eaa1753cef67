"""The methods of the contract, one row each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Generic, Type, TypeVar

from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import Message

from agentfense._wire.sandbox.v1 import codebase_pb2, common_pb2, event_pb2, sandbox_pb2, system_pb2

Req = TypeVar("Req", bound=Message)
Res = TypeVar("Res", bound=Message)


@dataclass(frozen=True)
class Method(Generic[Req, Res]):
    """One method of a service."""

    #: "/sandbox.v1.SandboxService/Exec"
    path: str
    serialize: Callable[[Req], bytes]
    deserialize: Callable[[bytes], Res]
    #: Doing it twice is as good as doing it once.
    idempotent: bool


def _method(service: ServiceDescriptor, name: str, request: Type[Req], response: Type[Res]) -> Method[Req, Res]:
    descriptor = service.methods_by_name[name]
    assert descriptor.input_type is request.DESCRIPTOR, name
    assert descriptor.output_type is response.DESCRIPTOR, name
    level = descriptor.GetOptions().idempotency_level
    return Method(
        path=f"/{service.full_name}/{name}",
        serialize=request.SerializeToString,
        deserialize=response.FromString,
        idempotent=level != MethodOptions.IDEMPOTENCY_UNKNOWN,
    )


_CODEBASE_SERVICE = codebase_pb2.DESCRIPTOR.services_by_name["CodebaseService"]
_SANDBOX_SERVICE = sandbox_pb2.DESCRIPTOR.services_by_name["SandboxService"]
_EVENT_SERVICE = event_pb2.DESCRIPTOR.services_by_name["EventService"]
_SYSTEM_SERVICE = system_pb2.DESCRIPTOR.services_by_name["SystemService"]


class CodebaseService:
    """Files on the server that sandboxes are made of."""

    create_codebase = _method(
        _CODEBASE_SERVICE, "CreateCodebase", codebase_pb2.CreateCodebaseRequest, codebase_pb2.Codebase
    )
    get_codebase = _method(_CODEBASE_SERVICE, "GetCodebase", codebase_pb2.GetCodebaseRequest, codebase_pb2.Codebase)
    list_codebases = _method(
        _CODEBASE_SERVICE, "ListCodebases", codebase_pb2.ListCodebasesRequest, codebase_pb2.ListCodebasesResponse
    )
    delete_codebase = _method(_CODEBASE_SERVICE, "DeleteCodebase", codebase_pb2.DeleteCodebaseRequest, common_pb2.Empty)
    upload_files = _method(_CODEBASE_SERVICE, "UploadFiles", codebase_pb2.UploadChunk, codebase_pb2.UploadResult)
    download_file = _method(_CODEBASE_SERVICE, "DownloadFile", codebase_pb2.DownloadFileRequest, codebase_pb2.FileChunk)
    list_files = _method(_CODEBASE_SERVICE, "ListFiles", codebase_pb2.ListFilesRequest, codebase_pb2.ListFilesResponse)
    compare_manifest = _method(
        _CODEBASE_SERVICE, "CompareManifest", codebase_pb2.CompareManifestRequest, codebase_pb2.CompareManifestResponse
    )
    batch_upload = _method(
        _CODEBASE_SERVICE, "BatchUpload", codebase_pb2.BatchUploadChunk, codebase_pb2.BatchUploadResult
    )
    upload_archive = _method(
        _CODEBASE_SERVICE, "UploadArchive", codebase_pb2.ArchiveChunk, codebase_pb2.BatchUploadResult
    )
    download_archive = _method(
        _CODEBASE_SERVICE, "DownloadArchive", codebase_pb2.DownloadArchiveRequest, codebase_pb2.FileChunk
    )
    delete_file = _method(
        _CODEBASE_SERVICE, "DeleteFile", codebase_pb2.DeleteFileRequest, codebase_pb2.BatchUploadResult
    )
    rename_file = _method(
        _CODEBASE_SERVICE, "RenameFile", codebase_pb2.RenameFileRequest, codebase_pb2.BatchUploadResult
    )
    list_versions = _method(
        _CODEBASE_SERVICE, "ListVersions", codebase_pb2.ListVersionsRequest, codebase_pb2.ListVersionsResponse
    )
    get_version = _method(_CODEBASE_SERVICE, "GetVersion", codebase_pb2.GetVersionRequest, codebase_pb2.Version)
    rollback = _method(_CODEBASE_SERVICE, "Rollback", codebase_pb2.RollbackRequest, codebase_pb2.Version)


class SandboxService:
    """Guarded environments in which commands run."""

    create_sandbox = _method(_SANDBOX_SERVICE, "CreateSandbox", sandbox_pb2.CreateSandboxRequest, sandbox_pb2.Sandbox)
    get_sandbox = _method(_SANDBOX_SERVICE, "GetSandbox", sandbox_pb2.GetSandboxRequest, sandbox_pb2.Sandbox)
    list_sandboxes = _method(
        _SANDBOX_SERVICE, "ListSandboxes", sandbox_pb2.ListSandboxesRequest, sandbox_pb2.ListSandboxesResponse
    )
    start_sandbox = _method(_SANDBOX_SERVICE, "StartSandbox", sandbox_pb2.StartSandboxRequest, sandbox_pb2.Sandbox)
    stop_sandbox = _method(_SANDBOX_SERVICE, "StopSandbox", sandbox_pb2.StopSandboxRequest, sandbox_pb2.Sandbox)
    pause_sandbox = _method(_SANDBOX_SERVICE, "PauseSandbox", sandbox_pb2.PauseSandboxRequest, sandbox_pb2.Sandbox)
    resume_sandbox = _method(_SANDBOX_SERVICE, "ResumeSandbox", sandbox_pb2.ResumeSandboxRequest, sandbox_pb2.Sandbox)
    snapshot_sandbox = _method(
        _SANDBOX_SERVICE, "SnapshotSandbox", sandbox_pb2.SnapshotSandboxRequest, sandbox_pb2.Snapshot
    )
    list_snapshots = _method(
        _SANDBOX_SERVICE, "ListSnapshots", sandbox_pb2.ListSnapshotsRequest, sandbox_pb2.ListSnapshotsResponse
    )
    restore_sandbox = _method(
        _SANDBOX_SERVICE, "RestoreSandbox", sandbox_pb2.RestoreSandboxRequest, sandbox_pb2.Sandbox
    )
    delete_snapshot = _method(_SANDBOX_SERVICE, "DeleteSnapshot", sandbox_pb2.DeleteSnapshotRequest, common_pb2.Empty)
    fork_sandbox = _method(
        _SANDBOX_SERVICE, "ForkSandbox", sandbox_pb2.ForkSandboxRequest, sandbox_pb2.ForkSandboxResponse
    )
    list_homes = _method(_SANDBOX_SERVICE, "ListHomes", sandbox_pb2.ListHomesRequest, sandbox_pb2.ListHomesResponse)
    put_secret = _method(_SANDBOX_SERVICE, "PutSecret", sandbox_pb2.PutSecretRequest, sandbox_pb2.Secret)
    list_secrets = _method(
        _SANDBOX_SERVICE, "ListSecrets", sandbox_pb2.ListSecretsRequest, sandbox_pb2.ListSecretsResponse
    )
    delete_secret = _method(_SANDBOX_SERVICE, "DeleteSecret", sandbox_pb2.DeleteSecretRequest, common_pb2.Empty)
    delete_home = _method(_SANDBOX_SERVICE, "DeleteHome", sandbox_pb2.DeleteHomeRequest, common_pb2.Empty)
    destroy_sandbox = _method(_SANDBOX_SERVICE, "DestroySandbox", sandbox_pb2.DestroySandboxRequest, common_pb2.Empty)
    exec = _method(_SANDBOX_SERVICE, "Exec", sandbox_pb2.ExecRequest, sandbox_pb2.ExecResult)
    exec_stream = _method(_SANDBOX_SERVICE, "ExecStream", sandbox_pb2.ExecRequest, sandbox_pb2.ExecOutput)
    create_session = _method(_SANDBOX_SERVICE, "CreateSession", sandbox_pb2.CreateSessionRequest, sandbox_pb2.Session)
    get_session = _method(_SANDBOX_SERVICE, "GetSession", sandbox_pb2.GetSessionRequest, sandbox_pb2.Session)
    list_sessions = _method(
        _SANDBOX_SERVICE, "ListSessions", sandbox_pb2.ListSessionsRequest, sandbox_pb2.ListSessionsResponse
    )
    destroy_session = _method(_SANDBOX_SERVICE, "DestroySession", sandbox_pb2.DestroySessionRequest, common_pb2.Empty)
    session_exec = _method(_SANDBOX_SERVICE, "SessionExec", sandbox_pb2.SessionExecRequest, sandbox_pb2.ExecResult)
    session_exec_stream = _method(
        _SANDBOX_SERVICE, "SessionExecStream", sandbox_pb2.SessionExecRequest, sandbox_pb2.ExecOutput
    )
    update_permissions = _method(
        _SANDBOX_SERVICE, "UpdatePermissions", sandbox_pb2.UpdatePermissionsRequest, sandbox_pb2.Sandbox
    )
    update_network = _method(_SANDBOX_SERVICE, "UpdateNetwork", sandbox_pb2.UpdateNetworkRequest, sandbox_pb2.Sandbox)
    update_expiry = _method(_SANDBOX_SERVICE, "UpdateExpiry", sandbox_pb2.UpdateExpiryRequest, sandbox_pb2.Sandbox)
    explain_path = _method(
        _SANDBOX_SERVICE, "ExplainPath", sandbox_pb2.ExplainPathRequest, sandbox_pb2.ExplainPathResponse
    )
    list_changes = _method(
        _SANDBOX_SERVICE, "ListChanges", sandbox_pb2.ListChangesRequest, sandbox_pb2.ListChangesResponse
    )
    diff_changes = _method(_SANDBOX_SERVICE, "DiffChanges", sandbox_pb2.DiffChangesRequest, sandbox_pb2.FileDiff)
    apply_changes = _method(
        _SANDBOX_SERVICE, "ApplyChanges", sandbox_pb2.ApplyChangesRequest, sandbox_pb2.ApplyChangesResponse
    )
    discard_changes = _method(
        _SANDBOX_SERVICE, "DiscardChanges", sandbox_pb2.DiscardChangesRequest, sandbox_pb2.DiscardChangesResponse
    )
    read_file = _method(_SANDBOX_SERVICE, "ReadFile", sandbox_pb2.ReadFileRequest, codebase_pb2.FileChunk)
    write_file = _method(_SANDBOX_SERVICE, "WriteFile", sandbox_pb2.WriteFileChunk, codebase_pb2.FileInfo)
    list_directory = _method(
        _SANDBOX_SERVICE, "ListDirectory", sandbox_pb2.ListDirectoryRequest, codebase_pb2.ListFilesResponse
    )
    stat_file = _method(_SANDBOX_SERVICE, "StatFile", sandbox_pb2.StatFileRequest, codebase_pb2.FileInfo)
    make_directory = _method(_SANDBOX_SERVICE, "MakeDirectory", sandbox_pb2.MakeDirectoryRequest, codebase_pb2.FileInfo)
    remove_file = _method(_SANDBOX_SERVICE, "RemoveFile", sandbox_pb2.RemoveFileRequest, common_pb2.Empty)
    move_file = _method(_SANDBOX_SERVICE, "MoveFile", sandbox_pb2.MoveFileRequest, codebase_pb2.FileInfo)
    open_terminal = _method(_SANDBOX_SERVICE, "OpenTerminal", sandbox_pb2.TerminalInput, sandbox_pb2.TerminalOutput)
    exec_interactive = _method(_SANDBOX_SERVICE, "ExecInteractive", sandbox_pb2.ExecInput, sandbox_pb2.ExecOutput)
    get_port = _method(_SANDBOX_SERVICE, "GetPort", sandbox_pb2.GetPortRequest, sandbox_pb2.Port)
    wait_for_port = _method(_SANDBOX_SERVICE, "WaitForPort", sandbox_pb2.WaitForPortRequest, common_pb2.Empty)
    forward_port = _method(_SANDBOX_SERVICE, "ForwardPort", sandbox_pb2.PortData, sandbox_pb2.PortData)
    watch_files = _method(_SANDBOX_SERVICE, "WatchFiles", sandbox_pb2.WatchFilesRequest, sandbox_pb2.FileEvent)
    create_code_context = _method(
        _SANDBOX_SERVICE, "CreateCodeContext", sandbox_pb2.CreateCodeContextRequest, sandbox_pb2.CodeContext
    )
    list_code_contexts = _method(
        _SANDBOX_SERVICE, "ListCodeContexts", sandbox_pb2.ListCodeContextsRequest, sandbox_pb2.ListCodeContextsResponse
    )
    restart_code_context = _method(
        _SANDBOX_SERVICE, "RestartCodeContext", sandbox_pb2.CodeContextRequest, sandbox_pb2.CodeContext
    )
    interrupt_code_context = _method(
        _SANDBOX_SERVICE, "InterruptCodeContext", sandbox_pb2.CodeContextRequest, common_pb2.Empty
    )
    delete_code_context = _method(
        _SANDBOX_SERVICE, "DeleteCodeContext", sandbox_pb2.CodeContextRequest, common_pb2.Empty
    )
    run_code = _method(_SANDBOX_SERVICE, "RunCode", sandbox_pb2.RunCodeRequest, sandbox_pb2.CodeOutput)
    start_process = _method(_SANDBOX_SERVICE, "StartProcess", sandbox_pb2.StartProcessRequest, sandbox_pb2.Process)
    list_processes = _method(
        _SANDBOX_SERVICE, "ListProcesses", sandbox_pb2.ListProcessesRequest, sandbox_pb2.ListProcessesResponse
    )
    attach_process = _method(_SANDBOX_SERVICE, "AttachProcess", sandbox_pb2.ProcessRequest, sandbox_pb2.ProcessOutput)
    send_input = _method(_SANDBOX_SERVICE, "SendInput", sandbox_pb2.SendInputRequest, common_pb2.Empty)
    close_input = _method(_SANDBOX_SERVICE, "CloseInput", sandbox_pb2.ProcessRequest, common_pb2.Empty)
    signal_process = _method(_SANDBOX_SERVICE, "SignalProcess", sandbox_pb2.SignalProcessRequest, common_pb2.Empty)
    resize_process = _method(_SANDBOX_SERVICE, "ResizeProcess", sandbox_pb2.ResizeProcessRequest, common_pb2.Empty)
    wait_process = _method(_SANDBOX_SERVICE, "WaitProcess", sandbox_pb2.ProcessRequest, sandbox_pb2.Process)


class EventService:
    """The audit log."""

    list_events = _method(_EVENT_SERVICE, "ListEvents", event_pb2.ListEventsRequest, event_pb2.ListEventsResponse)
    watch_events = _method(_EVENT_SERVICE, "WatchEvents", event_pb2.WatchEventsRequest, event_pb2.Event)


class SystemService:
    """The server itself and who may use it."""

    get_server_info = _method(_SYSTEM_SERVICE, "GetServerInfo", system_pb2.GetServerInfoRequest, system_pb2.ServerInfo)
    create_key = _method(_SYSTEM_SERVICE, "CreateKey", system_pb2.CreateKeyRequest, system_pb2.CreateKeyResponse)
    list_keys = _method(_SYSTEM_SERVICE, "ListKeys", system_pb2.ListKeysRequest, system_pb2.ListKeysResponse)
    revoke_key = _method(_SYSTEM_SERVICE, "RevokeKey", system_pb2.RevokeKeyRequest, common_pb2.Empty)
