import { FileNotFoundError, SandboxError, type SandboxErrorCode } from "../../errors.ts";
import type { CallOptions } from "../../model/options.ts";
import type { SandboxFiles } from "../../sandbox/files.ts";
import { boundary } from "./bounds.ts";
import { ToolFailure } from "./tool.ts";

export interface ToolEntry {
  /** Relative to the workspace. */
  readonly path: string;
  readonly kind: "file" | "directory" | "symlink";
  readonly size: number;
  /** Where a link leads, where that is known. */
  readonly target?: string | undefined;
  /** False: its content cannot be had. */
  readonly readable: boolean;
}

/** As much of the files of a workspace as tools need. Paths are as models write them: "src/a.ts", "/workspace/src/a.ts". */
export interface ToolFiles {
  read(path: string, options: CallOptions): AsyncIterable<Uint8Array>;
  stat(path: string, options: CallOptions): Promise<ToolEntry>;
  /** With the directories on its way. */
  write(path: string, content: string | Uint8Array, options: CallOptions): Promise<void>;
  list(path: string, options: CallOptions & { readonly recursive?: boolean | undefined }): Promise<ToolEntry[]>;
  /** Whether an error says no more than that this path cannot be had. */
  isRefusal(error: unknown): boolean;
}

/** The files of a sandbox. */
export function sandboxFiles(files: SandboxFiles): ToolFiles {
  const entryOf = ({ path, kind, size, target, permission }: Awaited<ReturnType<SandboxFiles["stat"]>>): ToolEntry => {
    return { path: path.replace(/^\//, ""), kind, size, target, readable: permission !== "view" };
  };
  return {
    read: (path, options) => files.readStream(path, options),
    stat: async (path, options) => entryOf(await files.stat(path, options)),
    write: (path, content, options) => writeWithParents(files, path, content, options),
    list: async (path, options) => {
      return (await files.readdir(path, { ...options, withFileTypes: true })).map(entryOf);
    },
    isRefusal: isTold,
  };
}

async function writeWithParents(
  files: SandboxFiles,
  path: string,
  content: string | Uint8Array,
  options: CallOptions,
): Promise<void> {
  try {
    await files.writeFile(path, content, options);
  } catch (error) {
    const parent = path.slice(0, path.lastIndexOf("/") + 1);
    if (!(error instanceof FileNotFoundError) || parent.replaceAll("/", "") === "") throw error;
    await files.mkdir(parent, { ...options, recursive: true });
    await files.writeFile(path, content, options);
  }
}

const LARGEST_EDITED_BYTES = 10 * 1024 * 1024;

export interface Replacement {
  readonly oldText: string;
  readonly newText: string;
  /** Every place, instead of the only one. */
  readonly all: boolean;
}

/** Replaces text in a file that is UTF-8; gives the number of places. */
export async function replaceText(
  files: ToolFiles,
  path: string,
  { oldText, newText, all }: Replacement,
  options: CallOptions,
): Promise<number> {
  if (oldText === "") throw new ToolFailure("the old text is empty");
  const { size } = await files.stat(path, options);
  if (size > LARGEST_EDITED_BYTES) throw new ToolFailure(`${path} is too large to be edited in this way`);
  const parts = decodeText(await readAll(files, path, options), path).split(oldText);
  const count = parts.length - 1;
  if (count === 0) throw new ToolFailure(`the old text is not in ${path}: it must be there exactly as given`);
  if (count > 1 && !all) {
    throw new ToolFailure(`the old text is in ${path} ${count} times: give more of what is around it, or replace all`);
  }
  if (count * newText.length > LARGEST_EDITED_BYTES) throw new ToolFailure(`${path} would become too large`);
  await files.write(path, parts.join(newText), options);
  return count;
}

/** The text of a file; throws for what is not UTF-8, which would not survive being written back. */
export function decodeText(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new ToolFailure(`${path} is no UTF-8 text`);
  }
}

export async function readAll(files: ToolFiles, path: string, options: CallOptions): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of files.read(path, options)) pieces.push(piece);
  return Buffer.concat(pieces);
}

const TOLD: ReadonlySet<SandboxErrorCode> = new Set<SandboxErrorCode>([
  "INVALID_ARGUMENT",
  "FILE_NOT_FOUND",
  "FILE_PERMISSION_DENIED",
  "FILE_EXISTS",
  "FILE_WRONG_KIND",
  "WORKDIR_UNUSABLE",
  "PROGRAM_NOT_FOUND",
  "LIMIT_EXCEEDED",
]);

function isTold(error: unknown): error is SandboxError {
  return error instanceof SandboxError && TOLD.has(error.code);
}

/** What to tell the model of a failure; one that is not for it is thrown on. */
export function textForModel(error: unknown): string {
  if (!(error instanceof ToolFailure) && !isTold(error)) throw error;
  return error.hint === undefined ? error.message : `${error.message} (${error.hint})`;
}

interface Window {
  readonly first: number;
  readonly last: number;
  readonly maxCharacters: number;
}

/** Why the text ends: with the file, before another line, or inside one. */
type End =
  | { readonly kind: "file"; readonly lines: number }
  | { readonly kind: "line"; readonly next: number }
  | { readonly kind: "inside"; readonly line: number };

/** Some lines of a file, of which no more is fetched and kept than that takes. */
export async function readWindow(
  content: AsyncIterable<Uint8Array>,
  window: Window,
): Promise<{ text: string; end: End }> {
  let text = "";
  let line = 1;
  let isAtStart = true;
  for await (const piece of textOf(content)) {
    for (let from = 0; from < piece.length; ) {
      if (line > window.last) return { text, end: { kind: "line", next: line } };
      const newline = piece.indexOf("\n", from);
      const to = newline === -1 ? piece.length : newline + 1;
      if (line >= window.first) {
        const room = window.maxCharacters - text.length;
        if (to - from > room) {
          // A line that would fit in an answer of its own is left for the next one.
          if (text !== "" && isAtStart) return { text, end: { kind: "line", next: line } };
          return { text: text + piece.slice(from, boundary(piece, from + room)), end: { kind: "inside", line } };
        }
        text += piece.slice(from, to);
      }
      isAtStart = newline !== -1;
      if (isAtStart) line += 1;
      from = to;
    }
  }
  return { text, end: { kind: "file", lines: isAtStart ? line - 1 : line } };
}

async function* textOf(content: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  for await (const bytes of content) {
    if (bytes.includes(0)) throw new ToolFailure("this is no text file");
    yield decoder.decode(bytes, { stream: true });
  }
  yield decoder.decode();
}
