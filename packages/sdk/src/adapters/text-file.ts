import { FileNotFoundError } from "../errors.ts";
import type { CallOptions } from "../model/options.ts";
import type { SandboxFiles } from "../sandbox/files.ts";
import { ToolFailure } from "./tools/failure.ts";

const LARGEST_EDITED_BYTES = 10 * 1024 * 1024;

export interface Replacement {
  readonly oldText: string;
  readonly newText: string;
  /** Every place, instead of the only one. */
  readonly all: boolean;
}

/** Replaces text in a file that is UTF-8; gives the number of places. */
export async function replaceText(
  files: SandboxFiles,
  path: string,
  { oldText, newText, all }: Replacement,
  options: CallOptions,
): Promise<number> {
  if (oldText === "") throw new ToolFailure("the old text is empty");
  const { size } = await files.stat(path, options);
  if (size > LARGEST_EDITED_BYTES) throw new ToolFailure(`${path} is too large to be edited in this way`);
  const parts = decodeText(await files.readFile(path, options), path).split(oldText);
  const count = parts.length - 1;
  if (count === 0) throw new ToolFailure(`the old text is not in ${path}: it must be there exactly as given`);
  if (count > 1 && !all) {
    throw new ToolFailure(`the old text is in ${path} ${count} times: give more of what is around it, or replace all`);
  }
  await files.writeFile(path, parts.join(newText), options);
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

/** Writes a file and, where they are missing, the directories on its way. */
export async function writeWithParents(
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
