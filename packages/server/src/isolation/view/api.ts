import type { Cancellable } from "../exec/api.ts";

export interface ViewStat {
  /** "/src/a.ts" */
  readonly path: string;
  readonly kind: "file" | "directory" | "symlink" | "other";
  readonly size: number;
  readonly mode: number;
  /** Of a symbolic link, else "". */
  readonly target: string;
  readonly modifiedAtMs: number;
}

/** What happened to an entry at a path relative to what is watched ("a.ts", "src/a.ts"). */
export interface ViewChange {
  /** `rename`: a name came or went; `change`: content or attributes did. */
  readonly kind: "rename" | "change";
  /**
   * "" is what is watched itself. As a `change` it also stands for more than could be told: whatever is of interest there is
   * to be looked at anew.
   */
  readonly path: string;
}

/**
 * The first workspace through its mount. Paths are relative to it, with or without a leading slash or `/workspace`.
 * Symbolic links are followed as inside, and never out of the workspace. A refusal is a SandboxError FILE_FAILED whose
 * `errno` is what a process inside gets. All need a running sandbox.
 */
export interface ViewFiles {
  /** Regular files only. The file is open before the promise resolves. */
  read(path: string, options?: Cancellable): Promise<AsyncIterable<Buffer>>;
  /** Replaces the content, or appends. Directories on the way must exist. */
  write(
    path: string,
    content: AsyncIterable<Uint8Array>,
    options?: Cancellable & { readonly mode?: number; readonly append?: boolean },
  ): Promise<ViewStat>;
  /** In the order of their paths; all below with `recursive`. Links are not followed below the path itself. */
  list(path: string, options?: Cancellable & { readonly recursive?: boolean }): Promise<readonly ViewStat[]>;
  /** Does not follow a link at the end. */
  stat(path: string): Promise<ViewStat>;
  makeDirectory(path: string, options?: { readonly recursive?: boolean }): Promise<ViewStat>;
  remove(path: string, options?: { readonly recursive?: boolean }): Promise<void>;
  move(from: string, to: string): Promise<ViewStat>;
  /**
   * What happens in a directory (with `recursive` all the way down), or to a file; resolves when the watch is on. A link at
   * the end is followed. A file is watched by its name, whatever level it has that shows it: it may go and come again. Ends
   * when the sandbox stops, and, after a `rename` of "", when the directory (the file's, for a file) is gone, moved or hidden
   * by new rules.
   */
  watch(path: string, options?: Cancellable & { readonly recursive?: boolean }): Promise<AsyncIterable<ViewChange>>;
  /** Others changed what these paths ("/src/a.ts") show, not through the mount: tells the watches of those that can be seen. */
  changedOutside(paths: readonly string[]): void;
}
