import type { MetadataStore } from "../store.ts";
import { Database } from "./database.ts";
import { storeMethods } from "./methods.ts";
import { storeCalls } from "./open.ts";
import type { StoreMethod } from "./protocol.ts";

/** A store that ends with the process. It needs no thread: nothing waits for a disk, and a call takes microseconds. */
export function openMemoryStore(): MetadataStore {
  const database = Database.inMemory();
  const methods = storeMethods(database);
  const calls = storeCalls(Object.keys(methods) as StoreMethod[], async (name, parameters) =>
    (methods[name] as (...parameters: readonly unknown[]) => unknown)(...parameters),
  );
  return { ...calls, [Symbol.asyncDispose]: async () => database.close() };
}
