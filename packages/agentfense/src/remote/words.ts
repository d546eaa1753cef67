import { ChangeKind, EntryKind, VersionOrigin } from "@agentfense/protocol/codebase";
import { PatternType, Permission, SandboxStatus, SessionStatus } from "@agentfense/protocol/common";
import { NetworkMode, ProcessKind, ProcessState, RuntimeType, SyncMode } from "@agentfense/protocol/sandbox";
import { Role } from "@agentfense/protocol/system";
import { UsageError } from "../command.ts";

// The words that people use for the values of the wire's enums: READ_ONLY is read-only.

export type Words = Readonly<Record<string, number>>;

export const PERMISSIONS = wordsOf(Permission);
export const PATTERN_TYPES = wordsOf(PatternType);
export const SANDBOX_STATES = wordsOf(SandboxStatus);
export const SESSION_STATES = wordsOf(SessionStatus);
export const PROCESS_KINDS = wordsOf(ProcessKind);
export const PROCESS_STATES = wordsOf(ProcessState);
export const RUNTIMES = wordsOf(RuntimeType);
export const NETWORKS = wordsOf(NetworkMode);
export const SYNC_MODES = wordsOf(SyncMode);
export const ROLES = wordsOf(Role);
export const CHANGE_KINDS = wordsOf(ChangeKind);
export const ENTRY_KINDS = wordsOf(EntryKind);
export const ORIGINS = wordsOf(VersionOrigin);

/** "" for an unspecified value, the number for one that is newer than we are. */
export function wordFor(words: Words, value: number): string {
  if (value === 0) return "";
  return Object.keys(words).find((word) => words[word] === value) ?? String(value);
}

/** The value of a word given on the command line; absent is 0, unspecified. */
export function valueFor(words: Words, word: string | undefined, option: string): number {
  if (word === undefined) return 0;
  const value = Object.hasOwn(words, word) ? words[word] : undefined;
  if (value === undefined) {
    throw new UsageError(`${option} is one of ${Object.keys(words).join(", ")}, not ${JSON.stringify(word)}`);
  }
  return value;
}

/** Generated enums map names to numbers and back. */
function wordsOf(enumeration: Readonly<Record<string, string | number>>): Words {
  const entries = Object.entries(enumeration).flatMap(([name, value]) =>
    typeof value === "number" && value !== 0 ? [[name.toLowerCase().replaceAll("_", "-"), value] as const] : [],
  );
  return Object.fromEntries(entries);
}
