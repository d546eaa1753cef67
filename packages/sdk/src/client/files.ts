import { SandboxService } from "@agentfense/protocol/sandbox";
import { ConnectionError } from "../errors.ts";
import type { CallOptions } from "../model/options.ts";
import type { FileChange, FileInfo } from "../model/records.ts";
import type { Content, RecursiveOptions, WithAttributes, WriteFileOptions } from "../model/requests.ts";
import type { CallStream } from "./call-stream.ts";
import { collected, streamed, uploadOf } from "./content.ts";
import { fileInfoOf } from "./messages/codebase.ts";
import { causeOf, FILE_EVENTS, uint32Of, wordOf } from "./messages/values.ts";
import type { Rpc } from "./rpc.ts";

const { method } = SandboxService;

/** Files of a running sandbox, as a process inside sees them. */
export class FileCalls {
  readonly #rpc: Rpc;

  constructor(rpc: Rpc) {
    this.#rpc = rpc;
  }

  read(sandboxId: string, path: string, options?: CallOptions): ReadableStream<Uint8Array> {
    return streamed(this.#rpc.serverStream(method.readFile, { sandboxId, path }, options));
  }

  async readBytes(sandboxId: string, path: string, options?: CallOptions): Promise<Uint8Array> {
    return await collected(this.#rpc.serverStream(method.readFile, { sandboxId, path }, options));
  }

  async write(
    sandboxId: string,
    path: string,
    content: Content,
    { mode, append = false, attributes = {}, attributePrefix = "", signal }: WriteFileOptions = {},
  ): Promise<FileInfo> {
    const metadata = { sandboxId, path, mode: uint32Of(mode, "mode"), append, attributes: { ...attributes } };
    const upload = uploadOf({ ...metadata, attributePrefix }, content);
    // Replacing a file twice is as good as once, adding to it is not.
    const requests = { ...upload, repeatable: upload.repeatable && !append };
    return fileInfoOf(await this.#rpc.clientStream(method.writeFile, requests, { signal }));
  }

  async list(
    sandboxId: string,
    path: string,
    { recursive = false, attributes = false, signal }: RecursiveOptions & WithAttributes = {},
  ): Promise<FileInfo[]> {
    const request = { sandboxId, path, recursive, attributes };
    const { files } = await this.#rpc.unary(method.listDirectory, request, { signal });
    return files.map((file) => fileInfoOf(file, attributes));
  }

  async stat(
    sandboxId: string,
    path: string,
    { attributes = false, signal }: CallOptions & WithAttributes = {},
  ): Promise<FileInfo> {
    const found = await this.#rpc.unary(method.statFile, { sandboxId, path, attributes }, { signal });
    return fileInfoOf(found, attributes);
  }

  async makeDirectory(
    sandboxId: string,
    path: string,
    { recursive = false, signal }: RecursiveOptions = {},
  ): Promise<FileInfo> {
    return fileInfoOf(await this.#rpc.unary(method.makeDirectory, { sandboxId, path, recursive }, { signal }));
  }

  async remove(sandboxId: string, path: string, { recursive = false, signal }: RecursiveOptions = {}): Promise<void> {
    await this.#rpc.unary(method.removeFile, { sandboxId, path, recursive }, { signal });
  }

  async move(sandboxId: string, fromPath: string, toPath: string, options?: CallOptions): Promise<FileInfo> {
    return fileInfoOf(await this.#rpc.unary(method.moveFile, { sandboxId, fromPath, toPath }, options));
  }

  async watch(
    sandboxId: string,
    path: string,
    { recursive = false, signal }: RecursiveOptions = {},
  ): Promise<CallStream<FileChange>> {
    const events = this.#rpc.serverStream(method.watchFiles, { sandboxId, path, recursive }, { signal });
    // The first message says that the watch has begun.
    const { done } = await events.next();
    if (done === true) {
      throw new ConnectionError("the server ended the watch before it began", { code: "CONNECTION_FAILED" });
    }
    return events.map(({ kind, path: filename, cause }) => ({
      eventType: wordOf(FILE_EVENTS, kind, "change of a file"),
      filename,
      ...causeOf(cause),
    }));
  }
}
