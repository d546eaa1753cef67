import {
  type BatchUploadResult,
  BatchUploadResultSchema,
  type Codebase,
  CodebaseSchema,
} from "@agentfense/protocol/codebase";
import { counted } from "../changes/table.ts";
import { print } from "../output.ts";
import { printRecord } from "../table/table.ts";
import { jsonOf, printJson, showSize, showTime } from "./show.ts";

export async function showCodebase(codebase: Codebase, json: boolean): Promise<void> {
  if (json) return printJson(jsonOf(CodebaseSchema, codebase));
  await printRecord([
    ["id", codebase.id],
    ["name", codebase.name],
    ["owner", codebase.ownerId],
    ["files", String(codebase.fileCount)],
    ["size", showSize(codebase.size)],
    ["version", String(codebase.version)],
    ["created", showTime(codebase.createdAt)],
    ["updated", showTime(codebase.updatedAt)],
  ]);
}

/** A change of files that made a version. */
export async function showNewVersion(result: BatchUploadResult, json: boolean): Promise<void> {
  if (json) return printJson(jsonOf(BatchUploadResultSchema, result));
  await print(`version ${result.version}, ${counted(result.filesChanged, "change")}\n`);
}
