import type { ContentSource } from "../../isolation/codebase/copying.ts";
import type { EntryRecord } from "../store/store.ts";
import type { FileEntry, ManifestEntry } from "./api.ts";

/** Where the content of a file comes from. */
export type Content =
  /** A name in the upload's staging directory. */
  | { readonly at: "staged"; readonly name: string }
  /** What an old version had at this path, to be shared with it. */
  | { readonly at: "kept"; readonly keptAs: string }
  /** The codebase has it somewhere. */
  | { readonly at: "codebase" };

/** What a change wants to be at a path. */
export type Wanted =
  | Exclude<ManifestEntry, FileEntry>
  | (Omit<FileEntry, "mode"> & {
      /** Absent: that of the file it replaces, or 0644. */
      readonly mode?: number;
      readonly content: Content;
      /** Absent: now. */
      readonly modifiedAtMs?: number;
    });

/** One path that changes. */
export interface PathChange {
  readonly path: string;
  readonly before: EntryRecord | undefined;
  readonly after: EntryRecord | undefined;
  /** Of a file that comes to be. */
  readonly content?: Content;
}

/** Content that the codebase has, to be staged under a name before the change begins. */
export interface StagedCopy {
  readonly from: ContentSource;
  readonly staged: string;
  readonly share: boolean;
}
