import { resolve } from "node:path";
import type { LogLine } from "../../../isolation/log.ts";
import type { MetadataStore } from "../store.ts";
import { METHOD_NAMES, type StoreCalls } from "./protocol.ts";
import { StoreThread } from "./store-thread.ts";

export interface SqliteStoreOptions {
  /** The database file; it is made (0600), with its directory (0700), when it is not there. */
  readonly path: string;
  readonly log?: (line: LogLine) => void;
}

/**
 * The metadata in one SQLite file. Several processes may have it open: nothing is remembered outside of the file, so what
 * one writes counts for the others at once.
 */
export async function openSqliteStore({ path, log }: SqliteStoreOptions): Promise<MetadataStore> {
  const thread = await StoreThread.start(resolve(path), (reason) => {
    log?.({ level: "error", message: `the thread of the metadata store is gone: ${reason}` });
  });
  const calls = Object.fromEntries(
    METHOD_NAMES.map((method) => [method, (...parameters: readonly unknown[]) => thread.call(method, parameters)]),
  ) as unknown as StoreCalls;
  return { ...calls, [Symbol.asyncDispose]: () => thread[Symbol.asyncDispose]() };
}
