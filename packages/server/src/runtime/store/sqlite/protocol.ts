import type { MetadataStore } from "../store.ts";

/** Everything a store can be asked. */
export type StoreCalls = Omit<MetadataStore, typeof Symbol.asyncDispose>;
export type StoreMethod = keyof StoreCalls;

/** The same methods as the thread of the database has them. */
export type Immediate<T> = {
  readonly [Name in keyof T]: T[Name] extends (...parameters: infer Parameters) => Promise<infer Result>
    ? (...parameters: Parameters) => Result
    : never;
};

/** One row per method: the compiler notices a missing one. */
const METHODS: Readonly<Record<StoreMethod, true>> = {
  insertCodebase: true,
  codebase: true,
  listCodebases: true,
  deleteCodebase: true,
  ownerUsage: true,
  entry: true,
  entries: true,
  entriesByHash: true,
  listEntries: true,
  beginChange: true,
  finishChange: true,
  unfinishedChanges: true,
  version: true,
  listVersions: true,
  changesOf: true,
  dropVersions: true,
  firstChangesAfter: true,
  insertSandbox: true,
  sandbox: true,
  updateSandbox: true,
  deleteSandbox: true,
  listSandboxes: true,
  countSandboxes: true,
  insertSession: true,
  session: true,
  closeSession: true,
  closeAllSessions: true,
  listSessions: true,
  appendEvents: true,
  listEvents: true,
  chainAnchor: true,
  chainHead: true,
  trimEvents: true,
  insertKey: true,
  key: true,
  listKeys: true,
  revokeKey: true,
  touchKey: true,
};

export const METHOD_NAMES = Object.keys(METHODS) as readonly StoreMethod[];

// Calls are answered in the order in which they were sent.
export interface StoreRequest {
  readonly method: StoreMethod;
  readonly parameters: readonly unknown[];
}

/** Of the error when the disk has no room for it. */
export const DISK_FULL = "DISK_FULL";
