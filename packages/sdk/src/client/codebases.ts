import { CodebaseService } from "@agentfense/protocol/codebase";
import { type Listing, paged } from "../listing.ts";
import type { CallOptions, PageOptions } from "../model/options.ts";
import type { BatchResult, Codebase, FileInfo, UploadResult, Version } from "../model/records.ts";
import type {
  BatchEntry,
  BatchOptions,
  Content,
  CreateCodebaseRequest,
  DownloadArchiveOptions,
  ListCodebasesOptions,
  ListFilesOptions,
  ManifestEntry,
  RecursiveOptions,
  UploadArchiveOptions,
  UploadFileOptions,
  VersionOptions,
} from "../model/requests.ts";
import { collected, streamed, uploadOf } from "./content.ts";
import {
  batchChunks,
  batchResultOf,
  codebaseOf,
  fileInfoOf,
  inMessages,
  manifestMessage,
  uploadResultOf,
  versionOf,
} from "./messages/codebase.ts";
import { bigintOf, pageSizeOf, uint32Of } from "./messages/values.ts";
import type { Rpc } from "./rpc.ts";

const { method } = CodebaseService;

export class CodebaseCalls {
  readonly #rpc: Rpc;

  constructor(rpc: Rpc) {
    this.#rpc = rpc;
  }

  async create({ name, ownerId = "" }: CreateCodebaseRequest, options?: CallOptions): Promise<Codebase> {
    return codebaseOf(await this.#rpc.unary(method.createCodebase, { name, ownerId }, options));
  }

  async get(codebaseId: string, options?: CallOptions): Promise<Codebase> {
    return codebaseOf(await this.#rpc.unary(method.getCodebase, { codebaseId }, options));
  }

  list({ ownerId = "", pageSize, signal }: ListCodebasesOptions = {}): Listing<Codebase> {
    return paged(async (pageToken) => {
      const request = { ownerId, pageSize: pageSizeOf(pageSize), pageToken };
      const page = await this.#rpc.unary(method.listCodebases, request, { signal });
      return { items: page.codebases.map(codebaseOf), nextPageToken: page.nextPageToken };
    });
  }

  async delete(
    codebaseId: string,
    options: CallOptions & { readonly force?: boolean | undefined } = {},
  ): Promise<void> {
    const { force = false, signal } = options;
    await this.#rpc.unary(method.deleteCodebase, { codebaseId, force }, { signal });
  }

  async uploadFile(
    codebaseId: string,
    filePath: string,
    content: Content,
    { mode, sha256: checksum = "", signal }: UploadFileOptions = {},
  ): Promise<UploadResult> {
    const metadata = { codebaseId, filePath, mode: uint32Of(mode, "mode"), checksum };
    return uploadResultOf(await this.#rpc.clientStream(method.uploadFiles, uploadOf(metadata, content), { signal }));
  }

  async uploadSymlink(
    codebaseId: string,
    filePath: string,
    symlinkTarget: string,
    options?: CallOptions,
  ): Promise<UploadResult> {
    const upload = uploadOf({ codebaseId, filePath, symlinkTarget }, "");
    return uploadResultOf(await this.#rpc.clientStream(method.uploadFiles, upload, options));
  }

  async compareManifest(
    codebaseId: string,
    entries: Iterable<ManifestEntry>,
    options?: CallOptions,
  ): Promise<string[]> {
    const missing: string[] = [];
    for (const group of inMessages(entries)) {
      const request = { codebaseId, entries: group.map(manifestMessage) };
      missing.push(...(await this.#rpc.unary(method.compareManifest, request, options)).missing);
    }
    return missing;
  }

  async batchUpload(
    codebaseId: string,
    entries: AsyncIterable<BatchEntry> | Iterable<BatchEntry>,
    { replaceAll = false, baseVersion, message = "", onBytes, signal }: BatchOptions = {},
  ): Promise<BatchResult> {
    const begin = { codebaseId, replaceAll, message, baseVersion: bigintOf(baseVersion, "baseVersion") };
    const requests = { make: () => batchChunks(begin, entries, onBytes), repeatable: false };
    return batchResultOf(await this.#rpc.clientStream(method.batchUpload, requests, { signal }));
  }

  async uploadArchive(
    codebaseId: string,
    tar: Content,
    { replaceAll = false, message = "", signal }: UploadArchiveOptions = {},
  ): Promise<BatchResult> {
    const upload = uploadOf({ codebaseId, replaceAll, message }, tar);
    return batchResultOf(await this.#rpc.clientStream(method.uploadArchive, upload, { signal }));
  }

  async downloadFile(codebaseId: string, path: string, options?: VersionOptions): Promise<Uint8Array> {
    return await collected(this.#download(codebaseId, path, options));
  }

  downloadStream(codebaseId: string, path: string, options?: VersionOptions): ReadableStream<Uint8Array> {
    return streamed(this.#download(codebaseId, path, options));
  }

  downloadArchive(
    codebaseId: string,
    { path = "", version, signal }: DownloadArchiveOptions = {},
  ): ReadableStream<Uint8Array> {
    const request = { codebaseId, path, version: bigintOf(version, "version") };
    return streamed(this.#rpc.serverStream(method.downloadArchive, request, { signal }));
  }

  listFiles(
    codebaseId: string,
    { path = "", recursive = false, version, pageSize, signal }: ListFilesOptions = {},
  ): Listing<FileInfo> {
    return paged(async (pageToken) => {
      const place = { codebaseId, path, recursive, version: bigintOf(version, "version") };
      const request = { ...place, pageSize: pageSizeOf(pageSize ?? FILES_A_PAGE), pageToken };
      const page = await this.#rpc.unary(method.listFiles, request, { signal });
      return { items: page.files.map((file) => fileInfoOf(file)), nextPageToken: page.nextPageToken };
    });
  }

  async deleteFile(
    codebaseId: string,
    filePath: string,
    { recursive = false, signal }: RecursiveOptions = {},
  ): Promise<BatchResult> {
    return batchResultOf(await this.#rpc.unary(method.deleteFile, { codebaseId, filePath, recursive }, { signal }));
  }

  async renameFile(codebaseId: string, fromPath: string, toPath: string, options?: CallOptions): Promise<BatchResult> {
    return batchResultOf(await this.#rpc.unary(method.renameFile, { codebaseId, fromPath, toPath }, options));
  }

  listVersions(codebaseId: string, { pageSize, signal }: PageOptions = {}): Listing<Version> {
    return paged(async (pageToken) => {
      const request = { codebaseId, pageSize: pageSizeOf(pageSize), pageToken };
      const page = await this.#rpc.unary(method.listVersions, request, { signal });
      return { items: page.versions.map(versionOf), nextPageToken: page.nextPageToken };
    });
  }

  async getVersion(codebaseId: string, version: number, options?: CallOptions): Promise<Version> {
    const request = { codebaseId, version: bigintOf(version, "version") };
    return versionOf(await this.#rpc.unary(method.getVersion, request, options));
  }

  async rollback(codebaseId: string, version: number, options?: CallOptions): Promise<Version> {
    const request = { codebaseId, version: bigintOf(version, "version") };
    return versionOf(await this.#rpc.unary(method.rollback, request, options));
  }

  #download(codebaseId: string, filePath: string, { version, signal }: VersionOptions = {}) {
    const request = { codebaseId, filePath, version: bigintOf(version, "version") };
    return this.#rpc.serverStream(method.downloadFile, request, { signal });
  }
}

/** Without a size the server answers with all of them in one message, which a large codebase does not fit into. */
const FILES_A_PAGE = 1000;
