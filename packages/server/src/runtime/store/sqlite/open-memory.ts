import type { MetadataStore } from "../store.ts";
import { Database } from "./database.ts";
import { storeMethods } from "./methods.ts";
import { METHOD_NAMES, type StoreCalls } from "./protocol.ts";

/** A store that ends with the process. It needs no thread: nothing waits for a disk, and a call takes microseconds. */
export function openMemoryStore(): MetadataStore {
  const database = Database.inMemory();
  const methods = storeMethods(database);
  const calls = Object.fromEntries(
    METHOD_NAMES.map((name) => {
      const method = methods[name] as (...parameters: readonly unknown[]) => unknown;
      return [name, async (...parameters: readonly unknown[]) => method(...parameters)];
    }),
  ) as unknown as StoreCalls;
  return { ...calls, [Symbol.asyncDispose]: async () => database.close() };
}
