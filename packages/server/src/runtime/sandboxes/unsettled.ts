import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isSandboxId } from "../ids.ts";

const SUFFIX = ".unsettled";

/**
 * Marks beside the deltas: this sandbox's changes are on their way into the codebase and have not left the delta. One that is
 * found after a crash says that the delta may hold what the codebase has, which must leave before somebody writes something
 * newer there: the next sync would take it for a change.
 */
export function unsettledIn(directory: string) {
  const place = (sandboxId: string): string => join(directory, `${sandboxId}${SUFFIX}`);
  return {
    mark: (sandboxId: string): Promise<void> => writeFile(place(sandboxId), "", { mode: 0o600 }),
    clear: (sandboxId: string): Promise<void> => rm(place(sandboxId), { force: true }),
    async marked(): Promise<readonly string[]> {
      const marks = (await readdir(directory)).filter((name) => name.endsWith(SUFFIX));
      return marks.map((name) => name.slice(0, -SUFFIX.length)).filter(isSandboxId);
    },
  };
}

export type Unsettled = ReturnType<typeof unsettledIn>;
