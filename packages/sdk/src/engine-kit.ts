// For whoever makes an engine, or talks to one below the level of Sandbox. Not for end users.

export { shellWord } from "./client/messages/command.ts";
export { sandboxError } from "./client/sandbox-error.ts";
export type { Engine } from "./engine.ts";
export { chooseEndpoint, type Endpoint, sendsKeyInTheClear } from "./remote/endpoint.ts";
export { RemoteEngine } from "./remote/engine.ts";
export { listSandboxes, openCodebase, openExisting, openNew, openSnapshot } from "./sandbox/opening/from-codebase.ts";
export { openLocal } from "./sandbox/opening/from-local.ts";
export { openByKey } from "./sandbox/opening/get-or-create.ts";
export type { OpeningKit } from "./sandbox/opening/kit.ts";
export type { SandboxParts } from "./sandbox/parts.ts";
export { type Selection, selectEntries } from "./upload/select.ts";
export { sendEntries } from "./upload/upload.ts";
