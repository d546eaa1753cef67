import { stat } from "node:fs/promises";
import {
  type Change,
  type DiscardReport,
  discardChanges,
  foldChanges,
  type ListSpec,
  listChanges,
} from "@agentfense/server/isolation";
import { UsageError } from "../command-failure.ts";
import { print } from "../output.ts";
import { paintFor, printable } from "../terminal.ts";
import { counted, countsText, KIND_LETTERS, shownPath } from "../wording.ts";
import { paintMark } from "./colours.ts";
import { explainRefusal, readDeltaRecord, requireDelta } from "./kept-delta.ts";

export interface DiscardValues {
  readonly delta?: string | undefined;
  readonly all?: boolean | undefined;
  readonly json?: boolean | undefined;
}

/** `agentfense discard` */
export async function discard(values: DiscardValues, paths: readonly string[]): Promise<number> {
  if ((values.all === true) === paths.length > 0) throw new UsageError("discard takes --all or one or more PATHs");
  const delta = await requireDelta(values.delta);
  const selected = values.all ? {} : { paths };
  // Told before they go: afterwards nobody can look.
  const changes = await Array.fromAsync(listChanges({ delta, ...(await codebaseOf(delta)), ...selected })).catch(
    explainRefusal,
  );
  const { failed } = await discardChanges({ delta, ...selected }).catch(explainRefusal);
  const discarded = changes.filter(({ path }) => !failed.some((kept) => isAtOrBelow(path, kept.path)));
  if (values.json) await print(`${JSON.stringify({ discarded, failed }, undefined, 2)}\n`);
  else await report(discarded, failed);
  return failed.length === 0 ? 0 : 1;
}

/** Empty when the delta does not tell, or its codebase is gone: then all that it holds counts as added. */
async function codebaseOf(delta: string): Promise<Pick<ListSpec, "lowers" | "rules" | "tellsAll" | "ignores">> {
  const record = await readDeltaRecord(delta);
  if (record === undefined) return { lowers: [] };
  const isThere = await stat(record.directory)
    .then((entry) => entry.isDirectory())
    .catch(() => false);
  return { lowers: isThere ? [record.directory] : [], rules: record.rules, tellsAll: true, ignores: true };
}

async function report(discarded: readonly Change[], failed: DiscardReport["failed"]): Promise<void> {
  const paint = paintFor(process.stdout, process.env);
  for (const change of foldChanges(discarded)) {
    const { kind, folded } = change;
    const letter = paintMark(folded ? "I" : KIND_LETTERS[kind], " ", paint);
    await print(
      folded ? `${letter} ${printable(change.path)}  (${countsText(folded)})\n` : `${letter} ${shownPath(change)}\n`,
    );
  }
  for (const { path, reason } of failed) await print(`failed ${printable(path)}  (${printable(reason)})\n`);
  await print(
    `${counted(discarded.length, "change")} discarded${failed.length > 0 ? `, ${failed.length} failed` : ""}\n`,
  );
}

function isAtOrBelow(path: string, directory: string): boolean {
  return directory === "/" || path === directory || path.startsWith(`${directory}/`);
}
