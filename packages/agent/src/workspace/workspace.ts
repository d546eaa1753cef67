/** What is at a path. */
export interface WorkspaceEntry {
  /** Relative to the workspace: "output/result.txt". */
  readonly path: string;
  readonly kind: "file" | "directory" | "symlink";
  /** The size of a file, in bytes. */
  readonly size: number;
  readonly modifiedAt: Date;
}

/**
 * The files that executors, tools and browsers share. Paths are relative ("output/result.txt", "" is the workspace itself);
 * absolute ones, "..", NUL and links that lead outside are a PathTraversalError, whatever is there.
 */
export interface Workspace {
  /** As UTF-8. */
  readFile(path: string): Promise<string>;
  readFileBytes(path: string): Promise<Uint8Array>;
  /** The old content or the new one, never half of it. Makes the directories on the way. */
  writeFile(path: string, content: string | Uint8Array): Promise<void>;
  /** What a directory has, sorted by path. */
  list(path?: string, options?: { readonly recursive?: boolean | undefined }): Promise<WorkspaceEntry[]>;
  /** A file, or a directory with all that is in it if `recursive`. */
  delete(path: string, options?: { readonly recursive?: boolean | undefined }): Promise<void>;
  stat(path: string): Promise<WorkspaceEntry>;
}
