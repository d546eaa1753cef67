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
