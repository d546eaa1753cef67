import { randomBytes } from "node:crypto";
import type { CodebaseDisk } from "../../isolation/jobs/codebase-disk.ts";
import type { ContentSender } from "../../isolation/jobs/sending.ts";
import type { StagedCopy } from "./wanted.ts";

/** Where the content of one change waits. It goes when nothing came of the change. */
export class Staging implements AsyncDisposable {
  readonly upload = randomBytes(12).toString("hex");
  readonly #disk: CodebaseDisk;
  readonly #codebaseId: string;
  #sender: ContentSender | undefined;
  #isUsed = false;
  #isHandedOver = false;

  constructor(disk: CodebaseDisk, codebaseId: string) {
    this.#disk = disk;
    this.#codebaseId = codebaseId;
  }

  send(): ContentSender {
    this.#isUsed = true;
    this.#sender = this.#disk.send(this.#codebaseId, this.upload);
    return this.#sender;
  }

  /** Resolves when what was sent is on the disk. */
  async settled(): Promise<void> {
    await this.#sender?.settled();
  }

  /** A directory of the host's to put files into. */
  makeDirectory(): string {
    this.#isUsed = true;
    return this.#disk.makeStaging(this.#codebaseId, this.upload);
  }

  async copy(copies: readonly StagedCopy[], signal?: AbortSignal): Promise<void> {
    if (copies.length === 0) return;
    this.#isUsed = true;
    await this.#disk.copy(this.#codebaseId, this.upload, copies, signal);
  }

  /** Names of files that are not there as they should be. */
  async inspect(files: readonly { readonly name: string; readonly size: number }[]): Promise<readonly string[]> {
    return await this.#disk.inspectStaged(this.#codebaseId, this.upload, files);
  }

  /** A journal speaks of it now: it lives until that is done. */
  handOver(): void {
    this.#isHandedOver = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sender?.[Symbol.asyncDispose]();
    if (!this.#isUsed || this.#isHandedOver) return;
    // What cannot be removed now is removed at the next start.
    await this.#disk.removeStaging(this.#codebaseId, this.upload).catch(() => {});
  }
}
