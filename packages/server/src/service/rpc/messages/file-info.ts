import type { FileInfoSchema } from "@agentfense/protocol/codebase";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ViewEntry } from "../../../runtime/sandboxes/api.ts";
import type { EntryRecord } from "../../../runtime/store/store.ts";
import { PERMISSIONS } from "./enums.ts";
import { timestampMessage } from "./fields.ts";

type FileInfoInit = MessageInitShape<typeof FileInfoSchema>;

/** How a caller writes paths, "/src/a.ts" or "src/a.ts": the answer's paths begin as the request's path did. */
export type PathForm = "absolute" | "relative";

export function pathForm(requestPath: string): PathForm {
  return requestPath.startsWith("/") ? "absolute" : "relative";
}

/** A file of a codebase. */
export function entryInfo(entry: EntryRecord, form: PathForm): FileInfoInit {
  return { ...commonInfo(entry, form), checksum: entry.sha256 };
}

/** A file as a sandbox sees it. */
export function viewInfo(entry: ViewEntry, form: PathForm): FileInfoInit {
  return { ...commonInfo(entry, form), permission: PERMISSIONS[entry.permission] };
}

function commonInfo(entry: EntryRecord | ViewEntry, form: PathForm): FileInfoInit {
  const relative = entry.path.startsWith("/") ? entry.path.slice(1) : entry.path;
  return {
    path: form === "absolute" ? `/${relative}` : relative,
    name: relative.slice(relative.lastIndexOf("/") + 1),
    isDir: entry.kind === "directory",
    size: BigInt(Math.trunc(entry.size)),
    modifiedAt: timestampMessage(entry.modifiedAtMs),
    mode: entry.mode & 0o7777,
    symlinkTarget: entry.target,
  };
}
