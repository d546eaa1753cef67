import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { printable } from "../terminal.ts";
import { counted, showSize } from "../wording.ts";
import type { ViewEntry } from "./workspace-view.ts";

/** How much is read, which together with a search that is linear bounds the time. */
export interface ContentBounds {
  readonly bytesOfFile: number;
  readonly bytes: number;
  readonly files: number;
}

const BOUNDS: ContentBounds = { bytesOfFile: 256 * 1024, bytes: 256 * 1024 * 1024, files: 200_000 };

/** A file with a zero byte in its first part is no text. */
const FIRST_PART = 8192;

/** Directories of other people's code: what is in them is published and says nothing about this project. */
const FOREIGN: ReadonlySet<string> = new Set(["node_modules", "bower_components", ".venv", "venv", "site-packages"]);

export function isForeign(name: string): boolean {
  return FOREIGN.has(name);
}

/** Reads the beginnings of text files, up to bounds, and keeps account of what it left out. */
export class ContentReader {
  /** Files that could not be read, each with the reason. */
  readonly failures: string[] = [];
  readonly #bounds: ContentBounds;
  readonly #buffer: Buffer;
  #bytes = 0;
  #files = 0;
  readonly #cut: string[] = [];
  #beyond = 0;
  #foreign = 0;

  constructor(bounds: ContentBounds = BOUNDS) {
    this.#bounds = bounds;
    this.#buffer = Buffer.allocUnsafe(bounds.bytesOfFile + 1);
  }

  /** The text of a file, one character a byte: keys are ASCII, and no encoding has to be guessed. */
  readonly textOf = (entry: ViewEntry): string | undefined => {
    if (entry.path.split("/").some(isForeign)) this.#foreign++;
    else if (this.#files >= this.#bounds.files || this.#bytes >= this.#bounds.bytes) this.#beyond++;
    else return this.#read(entry);
    return undefined;
  };

  /** What was left out, as sentences. */
  leftOut(): string[] {
    const { bytesOfFile, bytes, files } = this.#bounds;
    const [first = ""] = this.#cut;
    const others = this.#cut.length === 1 ? "" : ` and of ${counted(this.#cut.length - 1, "other file")}`;
    return [
      ...(first === "" ? [] : [`only the first ${showSize(bytesOfFile)} of ${printable(first)}${others}`]),
      ...(this.#beyond === 0
        ? []
        : [`not ${counted(this.#beyond, "file")}, after ${showSize(bytes)} or ${files} files of others`]),
      ...(this.#foreign === 0 ? [] : [`not ${counted(this.#foreign, "file")} of dependencies`]),
    ].map((what) => `looked for keys in files, but ${what}`);
  }

  #read(entry: ViewEntry): string | undefined {
    this.#files++;
    let file: number | undefined;
    try {
      // Should it be swapped after it was listed: a link fails to open, and a pipe does not make us wait.
      file = openSync(entry.location, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      if (!fstatSync(file).isFile()) return undefined;
      return this.#beginning(file, entry.path);
    } catch (error) {
      this.failures.push(`${printable(entry.path)} (${(error as NodeJS.ErrnoException).code ?? String(error)})`);
      return undefined;
    } finally {
      if (file !== undefined) closeSync(file);
    }
  }

  #beginning(file: number, path: string): string | undefined {
    let length = 0;
    while (length < this.#buffer.length) {
      // The first part decides alone whether the rest is worth reading.
      const most = Math.min(length === 0 ? FIRST_PART : Infinity, this.#buffer.length - length);
      const read = readSync(file, this.#buffer, length, most, null);
      if (read === 0) break;
      this.#bytes += read;
      if (length === 0 && this.#buffer.subarray(0, read).includes(0)) return undefined;
      length += read;
    }
    if (length > this.#bounds.bytesOfFile) this.#cut.push(path);
    return this.#buffer.toString("latin1", 0, Math.min(length, this.#bounds.bytesOfFile));
  }
}
