import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { openSqliteStore } from "../../../src/runtime/store/sqlite/open-sqlite-store.ts";
import type { MetadataStore } from "../../../src/runtime/store/store.ts";

/** A real store for the running test, and the path of its file for those who tamper with it. */
export async function temporaryStore(): Promise<{ readonly store: MetadataStore; readonly path: string }> {
  const directory = await mkdtemp(join(tmpdir(), "agentfense-store-"));
  const path = join(directory, "metadata.db");
  const store = await openSqliteStore({ path });
  onTestFinished(async () => {
    await store[Symbol.asyncDispose]();
    await rm(directory, { recursive: true, force: true });
  });
  return { store, path };
}
