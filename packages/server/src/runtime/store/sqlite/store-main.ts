import assert from "node:assert/strict";
import { parentPort, workerData } from "node:worker_threads";
import { Database } from "./database.ts";
import { storeMethods } from "./methods.ts";
import type { FromStoreThread, ToStoreThread } from "./protocol.ts";

// The thread that owns the connection: SQLite blocks, and here it blocks nobody else.

assert(parentPort !== null, "this file is the main program of a worker thread");
const port = parentPort;
const { path } = workerData as { readonly path: string };

try {
  serve(Database.open(path));
  answer({ kind: "opened" });
} catch (error) {
  answer({ kind: "refused", message: messageOf(error) });
}

function serve(database: Database): void {
  const methods = storeMethods(database);
  port.on("message", (message: ToStoreThread) => {
    if (message.kind === "close") {
      database.close();
      port.close();
      return;
    }
    const { id, method, parameters } = message;
    try {
      const call = methods[method] as (...parameters: readonly unknown[]) => unknown;
      answer({ kind: "result", id, result: call(...parameters) });
    } catch (error) {
      answer({ kind: "failure", id, message: messageOf(error), full: isFull(error) });
    }
  });
}

function answer(message: FromStoreThread): void {
  port.postMessage(message);
}

const SQLITE_FULL = 13;
/** The index of the write-ahead log cannot grow. */
const SQLITE_IOERR_SHMSIZE = 4874;

function isFull(error: unknown): boolean {
  const { errcode } = error as { readonly errcode?: unknown };
  return errcode === SQLITE_FULL || errcode === SQLITE_IOERR_SHMSIZE;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
