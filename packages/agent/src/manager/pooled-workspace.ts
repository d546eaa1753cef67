import { WorkspaceError } from "../errors.ts";
import type { Workspace, WorkspaceEntry } from "../workspace/workspace.ts";
import type { PooledExecutor } from "./lineup.ts";

/** The files of whatever the session has from its pool at that moment. */
export class PooledWorkspace implements Workspace {
  readonly #acquire: () => Promise<PooledExecutor>;

  constructor(acquire: () => Promise<PooledExecutor>) {
    this.#acquire = acquire;
  }

  async readFile(path: string): Promise<string> {
    return await (await this.#current()).readFile(path);
  }

  async readFileBytes(path: string): Promise<Uint8Array> {
    return await (await this.#current()).readFileBytes(path);
  }

  async writeFile(path: string, content: string | Uint8Array): Promise<void> {
    await (await this.#current()).writeFile(path, content);
  }

  async list(path?: string, options?: { readonly recursive?: boolean | undefined }): Promise<WorkspaceEntry[]> {
    return await (await this.#current()).list(path, options);
  }

  async delete(path: string, options?: { readonly recursive?: boolean | undefined }): Promise<void> {
    await (await this.#current()).delete(path, options);
  }

  async stat(path: string): Promise<WorkspaceEntry> {
    return await (await this.#current()).stat(path);
  }

  async #current(): Promise<Workspace> {
    const { workspace, type } = await this.#acquire();
    if (workspace !== undefined) return workspace;
    throw new WorkspaceError("NOT_PERMITTED", `the pool's executors (${type}) do not show their files`);
  }
}
