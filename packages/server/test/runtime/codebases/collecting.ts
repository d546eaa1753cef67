import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { StagedEntry } from "../../../src/runtime/codebases/api.ts";

interface Wish {
  readonly path: string;
  readonly text?: string;
  readonly target?: string;
  readonly directory?: boolean;
  readonly mode?: number;
  readonly madeAtMs?: number;
}

/** Collects wishes as a sandbox's delta would be: without content and target an absence. */
export function collecting(...wishes: readonly Wish[]): (staging: string) => Promise<readonly StagedEntry[]> {
  return async (staging) =>
    wishes.map(({ path, text, target = "", directory, mode = 0o644, madeAtMs = Date.now() }, index) => {
      const kind = text !== undefined ? "file" : directory ? "directory" : target !== "" ? "symlink" : "absent";
      if (text !== undefined) writeFileSync(join(staging, `${index}`), text);
      const sha256 = text === undefined ? "" : createHash("sha256").update(text).digest("hex");
      return {
        path,
        kind,
        mode,
        target,
        size: text?.length ?? 0,
        sha256,
        staged: text === undefined ? "" : `${index}`,
        madeAtMs,
      };
    });
}
