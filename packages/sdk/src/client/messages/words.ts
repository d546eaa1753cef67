import type { Level, Rule } from "@agentfense/permission";
import * as wire from "@agentfense/protocol/words";
import { SandboxError } from "../../errors.ts";
import type * as options from "../../model/options.ts";
import type * as records from "../../model/records.ts";
import type { ManifestEntry } from "../../model/requests.ts";
import { invalid } from "./numbers.ts";

// Every word of ours has a number on the wire, or this does not compile.

type Numbers<Word extends string> = Readonly<Record<Word, number>>;

export const PERMISSIONS = wire.PERMISSIONS satisfies Numbers<Level>;
export const PATTERN_TYPES = wire.PATTERN_TYPES satisfies Numbers<NonNullable<Rule["type"]>>;
export const SANDBOX_STATUSES = wire.SANDBOX_STATUSES satisfies Numbers<records.SandboxStatus>;
export const SESSION_STATUSES = wire.SESSION_STATUSES satisfies Numbers<records.SessionInfo["status"]>;
export const RUNTIMES = wire.RUNTIMES satisfies Numbers<records.SandboxInfo["runtime"]>;
export const NETWORKS = wire.NETWORKS satisfies Numbers<options.NetworkMode>;
export const SYNC_MODES = wire.SYNC_MODES satisfies Numbers<options.SyncMode>;
export const VERSION_ORIGINS = wire.VERSION_ORIGINS satisfies Numbers<records.VersionOrigin>;
export const CHANGE_KINDS = wire.CHANGE_KINDS satisfies Numbers<records.ChangeKind>;
export const MANIFEST_KINDS = wire.MANIFEST_KINDS satisfies Numbers<ManifestEntry["kind"]>;
export const CHANGE_TYPES = wire.CHANGE_TYPES satisfies Numbers<records.Change["type"]>;
export const PROCESS_KINDS = wire.PROCESS_KINDS satisfies Numbers<records.ProcessKind>;
export const FILE_EVENTS = wire.FILE_EVENTS satisfies Numbers<records.FileChange["eventType"]>;
export const ROLES = wire.ROLES satisfies Numbers<records.Role>;

/** The word for a number. A server that is newer than this client may have numbers that it does not know. */
export function wordOf<Word extends string>(words: Readonly<Record<Word, number>>, number: number, what: string): Word {
  for (const word of Object.keys(words) as Word[]) if (words[word] === number) return word;
  throw new SandboxError(`the server sent a ${what} that this client does not know: ${number}`, {
    code: "UNKNOWN",
    hint: "update the client",
  });
}

/** The number of a word, 0 for none. Callers without types may have words that are none. */
export function numberFor<Word extends string>(
  words: Readonly<Record<Word, number>>,
  word: Word | undefined,
  what: string,
): number {
  if (word === undefined) return 0;
  if (Object.hasOwn(words, word)) return words[word];
  throw invalid(`${what} must be one of ${Object.keys(words).join(", ")}, not ${JSON.stringify(word)}`);
}
