import { workerData } from "node:worker_threads";
import { answer } from "../../../isolation/threads/answer.ts";
import { Database } from "./database.ts";
import { storeMethods } from "./methods.ts";
import { DISK_FULL, METHOD_NAMES, type StoreRequest } from "./protocol.ts";

// The thread that owns the connection: SQLite blocks, and here it blocks nobody else.

const { path } = workerData as { readonly path: string };
const database = Database.open(path);
const methods = storeMethods(database);

answer(
  (request: StoreRequest | typeof METHOD_NAMES) => {
    if (request === METHOD_NAMES) return Object.keys(methods);
    const { method, parameters } = request;
    const call = methods[method] as (...parameters: readonly unknown[]) => unknown;
    try {
      return call(...parameters);
    } catch (error) {
      throw isFull(error) ? Object.assign(error as Error, { code: DISK_FULL }) : error;
    }
  },
  { onStop: () => database.close() },
);

const SQLITE_FULL = 13;
/** The index of the write-ahead log cannot grow. */
const SQLITE_IOERR_SHMSIZE = 4874;

function isFull(error: unknown): boolean {
  const { errcode } = error as { readonly errcode?: unknown };
  return errcode === SQLITE_FULL || errcode === SQLITE_IOERR_SHMSIZE;
}
