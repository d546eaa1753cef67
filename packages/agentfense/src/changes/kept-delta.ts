import { constants } from "node:fs";
import { mkdir, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseRules, type Rule } from "@agentfense/permission";
import { ChangesError, type ChangesErrorCode } from "@agentfense/server/isolation";
import { CommandFailure, UsageError } from "../command-failure.ts";
import { rulesFor } from "../rules.ts";
import { printable } from "../terminal.ts";
import { resolveDirectory } from "../workspace-directory.ts";

/** `--delta`, without which diff, apply and discard have nothing to work on. */
export async function requireDelta(given: string | undefined): Promise<string> {
  if (given === undefined) throw new UsageError("--delta DELTA is needed: the directory that keeps the changes");
  return await resolveDirectory(given, "--delta");
}

export interface KeptDelta {
  readonly delta: string;
  /** The codebase it was made over. */
  readonly directory: string;
  readonly record: DeltaRecord | undefined;
}

/** The delta, and the codebase that it remembers or, where it does not, that is named. */
export async function requirePlaces(given: string | undefined, directory: string | undefined): Promise<KeptDelta> {
  const delta = await requireDelta(given);
  const record = await readDeltaRecord(delta);
  const named = directory ?? record?.directory;
  if (named === undefined) throw new UsageError("DIR is missing: the codebase directory, for the delta does not tell");
  const codebase = await resolveDirectory(named);
  requireApart(delta, codebase);
  requireSameDirectory(delta, record, codebase);
  return { delta, directory: codebase, record };
}

/** A delta in the codebase would be taken for part of it. */
export function requireApart(delta: string, codebase: string): void {
  if (`${delta}/`.startsWith(`${codebase}/`) || `${codebase}/`.startsWith(`${delta}/`)) {
    throw new UsageError(
      `DIR (${printable(codebase)}) and the delta (${printable(delta)}) must not be inside one another`,
    );
  }
}

/** Those that are named, else those of the last run; never the default of a run, which knows nothing of this delta. */
export async function rulesOf(
  { delta, record }: KeptDelta,
  named: { readonly preset?: string | undefined; readonly rules?: string | undefined },
): Promise<readonly Rule[]> {
  if (named.preset !== undefined || named.rules !== undefined) return (await rulesFor(named, undefined)).policy.rules;
  if (record !== undefined) return record.rules;
  throw new UsageError(`the delta ${printable(delta)} does not tell its rules: give --preset or --rules`);
}

/** Given wrongly, or right but not possible now. */
const GIVEN_WRONGLY: Readonly<Record<ChangesErrorCode, boolean>> = {
  NOT_A_DELTA: true,
  DELTA_UNUSABLE: false,
  DELTA_IN_USE: false,
  CODEBASE_UNUSABLE: true,
  CODEBASE_IN_USE: false,
  INVALID_PATH: true,
  NO_CHANGE: true,
  PART_OF_REPLACED_DIRECTORY: true,
};

/** For `catch`: what the library refuses as a whole, in the terms of the command line. */
export function explainRefusal(error: unknown): never {
  if (!(error instanceof ChangesError)) throw error;
  const message = printable(error.message);
  throw GIVEN_WRONGLY[error.code] ? new UsageError(message) : new CommandFailure(message);
}

/**
 * What a kept delta remembers of the run that made it, in `<delta>/record.json`, beside the layer in `tree/`: no sandbox
 * sees it, and `tree/` stays an OCI layer. Every run and mount that goes on with the delta writes it anew.
 *
 *   { "version": 1, "directory": "/real/path/of/the/codebase", "label": "preset development", "rules": [ … ] }
 */
export interface DeltaRecord {
  /** The codebase, without symlinks. */
  readonly directory: string;
  /** In force at the last run, the protection of the project's policy included. */
  readonly rules: readonly Rule[];
  /** A short name for the rules. */
  readonly label: string;
}

const NAME = "record.json";
const VERSION = 1;

/** Undefined for a delta that no command of ours made; one that cannot be understood is a failure, never "no rules". */
export async function readDeltaRecord(delta: string): Promise<DeltaRecord | undefined> {
  const path = join(delta, NAME);
  const text = await readFile(path, { encoding: "utf8", flag: constants.O_RDONLY | constants.O_NOFOLLOW }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return undefined;
      throw new CommandFailure(`${printable(path)} cannot be read (${error.code})`);
    },
  );
  return text === undefined ? undefined : parseRecord(text, path);
}

function parseRecord(text: string, path: string): DeltaRecord {
  try {
    const { version, directory, label, rules } = JSON.parse(text) as Record<string, unknown>;
    if (version === VERSION && typeof directory === "string" && typeof label === "string") {
      return { directory, label, rules: parseRules(rules) };
    }
  } catch {
    // Said below: what it holds is not for the person to mend.
  }
  throw new CommandFailure(`${printable(path)} is not the record of a delta`, {
    hint: "see the changes with agentfense diff after moving it away; then name DIR, and rules to apply",
  });
}

/** Writes the record by a rename, so that a crash or a full disk leaves the old record or the new one. */
export async function writeDeltaRecord(delta: string, record: DeltaRecord): Promise<void> {
  const [path, unfinished] = [join(delta, NAME), join(delta, `${NAME}.new`)];
  try {
    await mkdir(delta, { recursive: true, mode: 0o700 });
    await rm(unfinished, { force: true });
    await writeFile(unfinished, `${JSON.stringify({ version: VERSION, ...record })}\n`, { flag: "wx", mode: 0o600 });
    await using file = await open(unfinished, "r");
    await file.sync();
    await rename(unfinished, path);
  } catch (error) {
    throw new CommandFailure(`the delta cannot be written: ${printable((error as Error).message)}`);
  }
}

/** A delta goes on only over the codebase that it was made over. */
export function requireSameDirectory(delta: string, record: DeltaRecord | undefined, directory: string): void {
  if (record === undefined || record.directory === directory) return;
  throw new UsageError(
    `the delta ${printable(delta)} was made over ${printable(record.directory)}, not over ${printable(directory)}`,
    { hint: "to carry its changes elsewhere, there: agentfense diff --raw --delta DELTA | git apply" },
  );
}
