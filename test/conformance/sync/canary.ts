import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type State, stateOf } from "../../support/project.ts";

const SECRET = "canary: nobody was to read or write this\n";

/** Files outside of all storage that no sync may read or change; whatever leads out of a codebase leads here. */
export class Canary implements Disposable {
  readonly directory = mkdtempSync(join(tmpdir(), "agentfense-canary-"));
  readonly file = join(this.directory, "file");
  readonly below = join(this.directory, "below");
  readonly secret = SECRET;
  readonly #before: State;

  constructor() {
    writeFileSync(this.file, SECRET);
    mkdirSync(this.below);
    writeFileSync(join(this.below, "inner"), SECRET);
    this.#before = stateOf(this.directory);
  }

  /** Equal when nothing happened. */
  get state(): { readonly now: State; readonly before: State } {
    return { now: stateOf(this.directory), before: this.#before };
  }

  [Symbol.dispose](): void {
    rmSync(this.directory, { recursive: true, force: true });
  }
}
