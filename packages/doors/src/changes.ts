import {
  CodebaseError,
  type FileChange,
  type FileStat,
  type FileWatch,
  PermissionDeniedError,
  type Sandbox,
} from "@agentfense/sdk";

/** A change of a file, with what was found there right after it. */
export interface SeenChange {
  readonly type: "create" | "write" | "remove";
  /** Relative to what is watched; "" for that itself. */
  readonly name: string;
  /** "/workspace/src/a.ts" */
  readonly path: string;
  /** Absent: nothing is there that this caller may see. */
  readonly stat: FileStat | undefined;
}

/** The changes that a watch tells of, looked at. Those that are not meant are passed over. */
export async function* seenChanges(
  sandbox: Sandbox,
  { directory, watch }: { readonly directory: string; readonly watch: FileWatch },
  isMeant: (change: FileChange) => boolean = () => true,
): AsyncGenerator<SeenChange, void, undefined> {
  for await (const change of watch) {
    if (!isMeant(change)) continue;
    const { eventType, filename } = change;
    const path = filename === "" ? directory : `${directory}/${filename}`;
    const stat = await look(sandbox, path);
    const type = stat === undefined ? "remove" : eventType === "rename" ? "create" : "write";
    yield { type, name: filename, path, stat };
  }
}

export async function look(sandbox: Sandbox, path: string): Promise<FileStat | undefined> {
  try {
    return await sandbox.files.stat(path);
  } catch (error) {
    // Gone, hidden, or on a way that is none any more.
    if (error instanceof CodebaseError || error instanceof PermissionDeniedError) return undefined;
    throw error;
  }
}
