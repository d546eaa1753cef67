export interface ViewStat {
  /** "/src/a.ts" */
  readonly path: string;
  readonly kind: "file" | "directory" | "symlink" | "other";
  readonly size: number;
  readonly mode: number;
  /** Where a symbolic link leads, else "". */
  readonly target: string;
  readonly modifiedAtMs: number;
  /** Extended attributes, without "user.", where they were asked for. */
  readonly attributes?: Readonly<Record<string, string>>;
}

/** Extended attributes that a file gets, without "user."; those that begin with the prefix and are not given go. */
export interface NewAttributes {
  readonly values: Readonly<Record<string, string>>;
  /** "": none goes. */
  readonly prefix: string;
}

export const CHANGE_CAUSES = ["made", "removed", "moved-away", "moved-here", "written", "attributes"] as const;

/** What happened to an entry at a path relative to what is watched ("a.ts", "src/a.ts"). */
export interface ViewChange {
  /** `rename`: a name came or went; `change`: content or attributes did. */
  readonly kind: "rename" | "change";
  /** What it was, where the kernel said so. */
  readonly cause?: (typeof CHANGE_CAUSES)[number];
  /**
   * "" is what is watched itself. As a `change` it also stands for more than could be told: whatever is of interest there is
   * to be looked at anew.
   */
  readonly path: string;
}
