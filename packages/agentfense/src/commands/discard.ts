import { stat } from "node:fs/promises";
import {
  type Change,
  type DiscardReport,
  discardChanges,
  foldChanges,
  type ListSpec,
  listChanges,
} from "@agentfense/server/isolation";
import { paintMark } from "../changes/colours.ts";
import { readDeltaRecord } from "../changes/delta-record.ts";
import { explainRefusal, requireDelta } from "../changes/kept-delta.ts";
import { counted, countsText, KIND_LETTERS, shownPath } from "../changes/table.ts";
import { type Command, type ExitCode, parseArguments, UsageError } from "../command.ts";
import { print } from "../output.ts";
import { paintFor, printable } from "../terminal.ts";

const HELP = `Usage: agentfense discard --delta DELTA (--all | PATH…)

Removes changes from the delta kept by run or mount, so that the codebase shows again there: those at and below each PATH
(/src/main.ts or src/main.ts), or all. Lists what is gone then, what the .gitignore files name as counts. It cannot be brought back.

  --delta DELTA     the directory given to run or mount as --delta; it must not be in use
  --all             everything
  --json            { discarded: [{ kind, path, type, size, sensitive }], failed: [{ path, reason }] } instead
  -h, --help        this text
`;

const OPTIONS = { delta: { type: "string" }, all: { type: "boolean" }, json: { type: "boolean" } } as const;

export const discard: Command = { help: HELP, run };

async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals: paths } = parseArguments(args, OPTIONS);
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
