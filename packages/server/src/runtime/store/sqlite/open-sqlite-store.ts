import { access } from "node:fs/promises";
import { resolve } from "node:path";
import { AnsweringThread, ThreadError } from "../../../isolation/threads/answering-thread.ts";
import type { Log } from "../../log.ts";
import { RuntimeError } from "../../runtime-error.ts";
import type { MetadataStore } from "../store.ts";
import { Database } from "./database.ts";
import { storeMethods } from "./methods.ts";
import { DISK_FULL, METHOD_NAMES, type StoreCalls, type StoreMethod, type StoreRequest } from "./protocol.ts";

export interface SqliteStoreOptions {
  /** The database file; it is made (0600), with its directory (0700), when it is not there. */
  readonly path: string;
  /** Then none is made. */
  readonly mustExist?: boolean;
  readonly log?: Log;
}

/**
 * The metadata in one SQLite file, which a thread of its own has open. Several processes may have it open: nothing is remembered
 * outside of the file, so what one writes counts for the others at once.
 */
export async function openSqliteStore({ path, mustExist = false, log }: SqliteStoreOptions): Promise<MetadataStore> {
  // Opening would make an empty one.
  if (mustExist) await access(path);
  const main = new URL("./store-main.ts", import.meta.url);
  const thread = new AnsweringThread({ main, name: "agentfense-store", data: { path: resolve(path) } });
  try {
    await thread.started;
  } catch {
    throw new Error(await thread.ended);
  }
  let isClosed = false;
  void thread.ended.then((reason) => {
    if (!isClosed) log?.({ level: "error", message: `the thread of the metadata store is gone: ${reason}` });
  });
  const call = async (request: StoreRequest): Promise<unknown> => {
    if (isClosed) throw new Error("the metadata store is closed");
    try {
      return await thread.ask(request);
    } catch (error) {
      if (error instanceof ThreadError && error.code === DISK_FULL) {
        throw new RuntimeError("RESOURCES_EXHAUSTED", "the server's disk is full", { cause: error });
      }
      throw error;
    }
  };
  const methods = (await thread.ask(METHOD_NAMES)) as readonly StoreMethod[];
  return {
    ...storeCalls(methods, (method, parameters) => call({ method, parameters })),
    // What was asked before is still answered.
    async [Symbol.asyncDispose]() {
      isClosed = true;
      await thread.stop();
    },
  };
}

/** A store whose methods are answered by one function. */
function storeCalls(
  names: readonly StoreMethod[],
  call: (method: StoreMethod, parameters: readonly unknown[]) => Promise<unknown>,
): StoreCalls {
  const calls = names.map((name) => [name, (...parameters: readonly unknown[]) => call(name, parameters)]);
  return Object.fromEntries(calls) as unknown as StoreCalls;
}

/** A store that ends with the process. It needs no thread: nothing waits for a disk, and a call takes microseconds. */
export function openMemoryStore(): MetadataStore {
  const database = Database.inMemory();
  const methods = storeMethods(database);
  const calls = storeCalls(Object.keys(methods) as StoreMethod[], async (name, parameters) =>
    (methods[name] as (...parameters: readonly unknown[]) => unknown)(...parameters),
  );
  return { ...calls, [Symbol.asyncDispose]: async () => database.close() };
}
