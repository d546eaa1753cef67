import { once } from "node:events";
import {
  deflatePiece,
  diffChanges,
  encodeText,
  type FileDiff,
  foldChanges,
  literals,
} from "@agentfense/server/isolation";
import { UsageError } from "../command-failure.ts";
import { print, warn } from "../output.ts";
import { type Paint, paintFor, printable } from "../terminal.ts";
import { counted, countsText, KIND_LETTERS, shownPath } from "../wording.ts";
import { paintDiff, paintMark } from "./colours.ts";
import { explainRefusal, requirePlaces } from "./kept-delta.ts";

export interface DiffValues {
  readonly delta?: string | undefined;
  readonly all?: boolean | undefined;
  readonly stat?: boolean | undefined;
  readonly json?: boolean | undefined;
  readonly raw?: boolean | undefined;
}

/** `agentfense diff` */
export async function diff(values: DiffValues, given: string | undefined, paths: readonly string[]): Promise<number> {
  const forms = (["stat", "json", "raw"] as const).filter((form) => values[form] === true);
  if (forms.length > 1) throw new UsageError(`give one of --${forms.join(", --")}`);
  if (values.raw && process.stdout.isTTY) throw new UsageError("--raw goes to a file or a pipe, not to a terminal");
  const { delta, directory, record } = await requirePlaces(values.delta, given);
  const places = { delta, lowers: [directory] };
  const patch = values.raw === true;
  const ignores = paths.length === 0 && !(values.all || values.json || values.raw);
  const spec = { ...places, rules: record?.rules, tellsAll: true, patch, ignores, ...(paths.length > 0 && { paths }) };
  await FORMS[forms[0] ?? "text"](diffChanges(spec), places).catch(explainRefusal);
  return 0;
}

interface Layers {
  readonly delta: string;
  readonly lowers: readonly string[];
}

type Form = (changes: AsyncIterable<FileDiff>, layers: Layers) => Promise<void>;

const FORMS: Readonly<Record<"text" | "stat" | "json" | "raw", Form>> = {
  async text(changes) {
    const paint = paintFor(process.stdout, process.env);
    const folded: FileDiff[] = [];
    for await (const change of changes) {
      if (change.ignoredIn === undefined) await print(paintDiff(change.text, paint));
      else folded.push(change);
    }
    for (const line of foldedLines(folded, paint)) await print(`Ignored: ${line.slice(3)}\n`);
  },
  async raw(changes, layers) {
    let left = 0;
    for await (const { text, content, type, kind } of changes) {
      await printBytes(encodeText(text));
      if (text === "" && (type !== "directory" || kind === "modified")) left += 1;
      if (content === undefined) continue;
      const pieces = literals(content, (file, offset) => deflatePiece(layers, { file, offset }));
      for await (const piece of pieces) await print(piece);
    }
    if (left > 0)
      warn(`${counted(left, "change")} that git has no words for, or refuses, not in the patch; diff --stat lists all`);
  },
  async json(changes) {
    const rows: Omit<FileDiff, "text" | "content">[] = [];
    for await (const { text: _, content: __, ...row } of changes) rows.push(row);
    await print(`${JSON.stringify(rows, undefined, 2)}\n`);
  },
  async stat(changes) {
    const paint = paintFor(process.stdout, process.env);
    const total = { changes: 0, added: 0, removed: 0 };
    const folded: FileDiff[] = [];
    for await (const change of changes) {
      total.changes += 1;
      if (change.ignoredIn !== undefined) {
        folded.push(change);
        continue;
      }
      total.added += change.linesAdded;
      total.removed += change.linesRemoved;
      await print(`${statLine(change, paint)}\n`);
    }
    for (const line of foldedLines(folded, paint)) await print(`${line}\n`);
    const lines = total.added + total.removed > 0 ? `, +${total.added} -${total.removed}` : "";
    await print(total.changes === 0 ? "no changes\n" : `${counted(total.changes, "change")}${lines}\n`);
  },
};

/** "I! /node_modules  (200 added)": one line for each directory of what is ignored, a single change by its name. */
function foldedLines(changes: readonly FileDiff[], paint: Paint): string[] {
  return foldChanges(changes).map((change) => {
    const mark = change.sensitive ? "!" : " ";
    const counts = change.folded ? countsText(change.folded) : change.kind;
    return `${paintMark("I", mark, paint)} ${change.folded ? printable(change.path) : shownPath(change)}  (${counts})`;
  });
}

function statLine(change: FileDiff, paint: Paint): string {
  const remarks = {
    lines: `+${change.linesAdded} -${change.linesRemoved}`,
    binary: "binary",
    "too-large": "too large to show",
    nothing: "",
  };
  const remark = remarks[change.shows];
  const mark = change.sensitive ? "!" : " ";
  return `${paintMark(KIND_LETTERS[change.kind], mark, paint)} ${shownPath(change)}${remark === "" ? "" : `  ${remark}`}`;
}

/** As `print`, for bytes that need not be text. */
async function printBytes(bytes: Uint8Array): Promise<void> {
  if (!process.stdout.write(bytes)) await once(process.stdout, "drain");
}
