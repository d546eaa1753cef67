import { type Level, type LevelValue, levelName } from "@agentfense/permission";

/** Something that was looked at, read or written for the first time, for who wants to know what a command needs. */
export interface AccessEvent {
  kind: "accessed";
  path: string;
  /** The level it took. */
  level: Exclude<Level, "none">;
}

/** More paths than this nobody makes rules of; an agent must not fill the memory of the server with names. */
const MOST = 200_000;

/** Tells of each path once for each level that an operation on it took. */
export class AccessRecord {
  readonly #levels = new Map<string, LevelValue>();
  readonly #emit: (event: AccessEvent) => void;

  constructor(emit: (event: AccessEvent) => void) {
    this.#emit = emit;
  }

  note(path: string, level: LevelValue): void {
    const known = this.#levels.get(path);
    if (known === undefined ? this.#levels.size >= MOST : known >= level) return;
    this.#levels.set(path, level);
    this.#emit({ kind: "accessed", path, level: levelName(level) as AccessEvent["level"] });
  }
}
