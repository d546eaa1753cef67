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

/** What the thread of the database is asked for its names; calls are answered in the order in which they were sent. */
export const METHOD_NAMES = "method names";

export interface StoreRequest {
  readonly method: StoreMethod;
  readonly parameters: readonly unknown[];
}

/** Of the error when the disk has no room for it. */
export const DISK_FULL = "DISK_FULL";
