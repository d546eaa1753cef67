export { verifyAudit } from "./audit/verify.ts";
export { RuntimeError, type RuntimeErrorCode } from "./errors.ts";
export type { Keys } from "./keys/api.ts";
export { openKeys } from "./keys/open.ts";
export { openSqliteStore } from "./store/sqlite/open.ts";
export type { KeyRecord, MetadataStore } from "./store/store.ts";
