import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isSandboxId } from "../ids.ts";

const SUFFIX = ".unsettled";

/**
 * Marks beside the deltas: this sandbox's changes are on their way into the codebase and have not left the delta. One that is
 * found after a crash says that the delta may hold what the codebase has, which must leave before somebody writes something
 * newer there: the next sync would take it for a change.
 */
export class Unsettled {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async mark(sandboxId: string): Promise<void> {
    await writeFile(this.#place(sandboxId), "", { mode: 0o600 });
  }

  async clear(sandboxId: string): Promise<void> {
    await rm(this.#place(sandboxId), { force: true });
  }

  async marked(): Promise<readonly string[]> {
    const names = await readdir(this.#directory);
    return names
      .filter((name) => name.endsWith(SUFFIX))
      .map((name) => name.slice(0, -SUFFIX.length))
      .filter(isSandboxId);
  }

  #place(sandboxId: string): string {
    return join(this.#directory, `${sandboxId}${SUFFIX}`);
  }
}
