import { FileNotFoundError } from "@agentfense/sdk";
import * as shape from "../../shape.ts";
import { Refusal } from "../envelope.ts";
import { type AioCall, post, type Route } from "../route.ts";
import { fileAt } from "./content.ts";
import { fileRefusal, onFile } from "./file-refusal.ts";
import { type FileAt, readText, writeWithParents } from "./text.ts";
import { entriesBelow } from "./tree.ts";

// The editor that models know: view, create, str_replace, insert, undo_edit.

const input = shape.object({
  command: shape.oneOf(["view", "create", "str_replace", "insert", "undo_edit"]),
  path: shape.string(),
  file_text: shape.string().optional(),
  old_str: shape.string().optional(),
  new_str: shape.string().optional(),
  insert_line: shape.int().min(0).optional(),
  view_range: shape.list(shape.int()).min(2).max(2).optional(),
  replace_mode: shape.oneOf(["ALL", "FIRST", "LAST"]).optional(),
});

type EditorInput = shape.Value<typeof input>;

export const EDITOR_ROUTES: readonly Route[] = [post("v1/file/str_replace_editor", input, edit)];

interface Edited {
  readonly output: string;
  readonly before?: string | undefined;
  readonly after?: string | undefined;
}

async function edit(call: AioCall, given: EditorInput): Promise<unknown> {
  const at = fileAt(call, given.path, given.command);
  const { output, before, after } = await COMMANDS[given.command](call, at, given);
  return {
    output,
    error: null,
    path: given.path,
    prev_exist: given.command !== "create" || before !== undefined,
    old_content: before ?? null,
    new_content: after ?? null,
    metadata: null,
  };
}

const COMMANDS: Readonly<
  Record<EditorInput["command"], (call: AioCall, at: FileAt, given: EditorInput) => Promise<Edited>>
> = { view, create, str_replace: replace, insert, undo_edit: undo };

async function view(_: AioCall, at: FileAt, { view_range }: EditorInput): Promise<Edited> {
  const stat = await onFile(at, () => at.sandbox.files.stat(at.path, at));
  if (stat.isDirectory()) {
    const entries = await entriesBelow(at, { recursive: false });
    const names = entries.map(({ path, stat: each }) => `${path}${each.isDirectory() ? "/" : ""}`);
    return { output: [at.path, ...names.sort()].join("\n") };
  }
  const lines = (await readText(at)).split("\n");
  const [first, last] = view_range ?? [1, -1];
  const end = last === -1 ? lines.length : last!;
  if (first! < 1 || first! > lines.length || end < first!) {
    throw new Refusal(`view_range is within 1 and ${lines.length}: the lines of the file`);
  }
  return { output: numbered(lines.slice(first! - 1, end), first!) };
}

async function create(call: AioCall, at: FileAt, { file_text }: EditorInput): Promise<Edited> {
  if (file_text === undefined) throw new Refusal("create needs file_text");
  const before = await contentIfAny(at);
  await save(call, at, before, file_text);
  return { output: `File created successfully at: ${at.path}`, before, after: file_text };
}

async function replace(call: AioCall, at: FileAt, given: EditorInput): Promise<Edited> {
  const { old_str, new_str = "", replace_mode } = given;
  if (old_str === undefined || old_str === "") throw new Refusal("str_replace needs old_str");
  const before = await readText(at);
  const parts = before.split(old_str);
  const count = parts.length - 1;
  if (count === 0) throw new Refusal(`old_str is not in ${at.path} as it is given`);
  if (count > 1 && replace_mode === undefined) {
    throw new Refusal(`old_str is in ${at.path} ${count} times`, { hint: "give more around it, or a replace_mode" });
  }
  const where = replace_mode === "FIRST" ? 1 : replace_mode === "LAST" ? count : undefined;
  const after =
    where === undefined
      ? parts.join(new_str)
      : parts.slice(0, where).join(old_str) + new_str + parts.slice(where).join(old_str);
  await save(call, at, before, after);
  return { output: `The file ${at.path} has been edited.`, before, after };
}

async function insert(call: AioCall, at: FileAt, { insert_line, new_str }: EditorInput): Promise<Edited> {
  if (insert_line === undefined || new_str === undefined) throw new Refusal("insert needs insert_line and new_str");
  const before = await readText(at);
  const lines = before.split("\n");
  if (insert_line > lines.length) throw new Refusal(`insert_line is within 0 and ${lines.length}`);
  const after = [...lines.slice(0, insert_line), ...new_str.split("\n"), ...lines.slice(insert_line)].join("\n");
  await save(call, at, before, after);
  return { output: `The file ${at.path} has been edited.`, before, after };
}

async function undo({ place }: AioCall, at: FileAt): Promise<Edited> {
  const former = place.edits.take(at.path);
  if (former === undefined) throw new Refusal(`no edit of ${at.path} is known that could be undone`);
  const before = await contentIfAny(at);
  if (former.text === undefined) await onFile(at, () => at.sandbox.files.rm(at.path, at));
  else await writeWithParents(at, former.text);
  return { output: `Last edit to ${at.path} undone successfully.`, before, after: former.text };
}

async function save({ place }: AioCall, at: FileAt, before: string | undefined, after: string): Promise<void> {
  await writeWithParents(at, after);
  place.edits.put(at.path, before);
}

async function contentIfAny(at: FileAt): Promise<string | undefined> {
  try {
    await at.sandbox.files.stat(at.path, at);
  } catch (error) {
    if (error instanceof FileNotFoundError) return undefined;
    throw fileRefusal({ ...at, message: "the file cannot be looked at", type: "io_error" });
  }
  return await readText(at);
}

function numbered(lines: readonly string[], first: number): string {
  return lines.map((line, at) => `${`${first + at}`.padStart(6)}\t${line}`).join("\n");
}

const MOST_EDITS = 64;
const MOST_CHARACTERS = 1024 * 1024;

interface Edit {
  readonly path: string;
  /** Undefined where there was no file. */
  readonly text: string | undefined;
}

/** What files were before they were edited, the newest edits of all. */
export class Edits {
  #edits: Edit[] = [];

  put(path: string, text: string | undefined): void {
    this.#edits.push({ path, text });
    let size = 0;
    this.#edits = this.#edits.reverse().filter((edit, at) => {
      size += edit.text?.length ?? 0;
      return at < MOST_EDITS && size <= MOST_CHARACTERS;
    });
    this.#edits.reverse();
  }

  take(path: string): Edit | undefined {
    const at = this.#edits.findLastIndex((edit) => edit.path === path);
    return at === -1 ? undefined : this.#edits.splice(at, 1)[0];
  }
}
