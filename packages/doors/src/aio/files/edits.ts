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
