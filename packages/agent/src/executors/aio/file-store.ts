import { shellWord } from "@agentfense/sdk/engine";
import { z } from "zod";
import { type AioApi, AioRefusal } from "./api.ts";
import type { Runner } from "./runner.ts";

/** The files of a server. */
export class FileStore {
  readonly #api: AioApi;

  constructor(api: AioApi) {
    this.#api = api;
  }

  /** Absolute path → content. Makes the directories on the way where the server does not. */
  async write(
    files: Readonly<Record<string, string | Uint8Array>>,
    runner: Pick<Runner, "line">,
    signal: AbortSignal,
  ): Promise<void> {
    for (const [path, content] of Object.entries(files)) {
      try {
        await this.#writeOne(path, content, signal);
      } catch (error) {
        if (!(error instanceof AioRefusal) || error.errorType !== "not_found" || runner.line === undefined) throw error;
        await runner.line(`mkdir -p ${shellWord(path.slice(0, path.lastIndexOf("/")))}`, signal);
        await this.#writeOne(path, content, signal);
      }
    }
  }

  /** The beginning of a file; undefined when it is not there. */
  async read(
    path: string,
    maxBytes: number,
    signal: AbortSignal,
  ): Promise<{ readonly bytes: Uint8Array; readonly isCut: boolean } | undefined> {
    try {
      const { body, isCut } = await this.#api.download(path, maxBytes, { signal });
      return { bytes: body, isCut };
    } catch (error) {
      if (!(error instanceof AioRefusal) || error.status === 401 || error.status === 403) throw error;
      return undefined;
    }
  }

  async #writeOne(path: string, content: string | Uint8Array, signal: AbortSignal): Promise<void> {
    const packed = Buffer.from(content as string).toString("base64");
    await this.#api.post("v1/file/write", { file: path, content: packed, encoding: "base64" }, z.unknown(), { signal });
  }
}
