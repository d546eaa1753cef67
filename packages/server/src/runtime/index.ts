export { verifyAudit } from "./audit/verify.ts";
export type { Keys } from "./keys/api.ts";
export { openKeys } from "./keys/open-keys.ts";
export { RuntimeError, type RuntimeErrorCode } from "./runtime-error.ts";
export { examineStore, openStore, type StoreSettings } from "./store/open-store.ts";
export { openSqliteStore } from "./store/sqlite/open-sqlite-store.ts";
export type { KeyRecord, MetadataStore } from "./store/store.ts";
