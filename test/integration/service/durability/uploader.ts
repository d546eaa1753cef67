import type { Random } from "../../../conformance/model/random.ts";
import type { Message } from "../../../support/grpc-client.ts";
import type { ExpectedEvent } from "./events.ts";
import type { Change, CodebaseHistory } from "./history.ts";
import type { Line, Outcome } from "./line.ts";
import { type Entry, fileOf, type Manifest, moved, withEntry, without } from "./manifest.ts";

const LARGEST = 400_000;

/** A client that changes a codebase at random, one call after the other. Paths under "shared" are everybody's. */
export class Uploader {
  readonly #area: string;
  readonly #random: Random;
  readonly #codebase: CodebaseHistory;
  readonly #rollsBack: boolean;
  /** Versions that were acknowledged to this client. */
  readonly #versions: number[] = [];

  constructor(options: {
    readonly area: string;
    readonly random: Random;
    readonly codebase: CodebaseHistory;
    readonly rollsBack: boolean;
  }) {
    this.#area = options.area;
    this.#random = options.random;
    this.#codebase = options.codebase;
    this.#rollsBack = options.rollsBack;
  }

  async run(line: Line): Promise<void> {
    while (!line.isCut) {
      const kind = this.#random.weighted({
        upload: 5,
        link: 1,
        batch: 4,
        replace: this.#rollsBack ? 1 : 0,
        remove: 2,
        rename: 2,
        rollback: this.#rollsBack && this.#versions.length > 0 ? 2 : 0,
      });
      await this[kind](line);
    }
  }

  async upload(line: Line): Promise<void> {
    const path = this.#file();
    const content = this.#content();
    const mode = this.#random.pick([0, 0, 0o755, 0o600]);
    const change: Change = {
      what: `upload ${path}`,
      event: this.#event("files_uploaded"),
      apply(before) {
        const old = before.get(path);
        return withEntry(before, path, fileOf(content, mode || (old?.kind === "file" ? old.mode : 0o644)));
      },
    };
    this.#done(
      change,
      await line.attempt(change.what, () => line.client.upload(this.#codebase.id, path, content, { mode })),
    );
  }

  async link(line: Line): Promise<void> {
    const path = this.#file();
    const target = `../${this.#random.text(12)}`;
    const change: Change = {
      what: `link ${path}`,
      event: this.#event("files_uploaded"),
      apply: (before) => withEntry(before, path, { kind: "symlink", target }),
    };
    const upload = (): Promise<Message> => line.client.upload(this.#codebase.id, path, "", { symlink_target: target });
    this.#done(change, await line.attempt(change.what, upload));
  }

  batch(line: Line): Promise<void> {
    return this.#send(line, { replaceAll: false });
  }

  replace(line: Line): Promise<void> {
    return this.#send(line, { replaceAll: true });
  }

  async remove(line: Line): Promise<void> {
    const path = this.#random.chance(70) ? this.#file() : this.#directory();
    const change: Change = {
      what: `remove ${path}`,
      event: this.#event("file_deleted"),
      apply: (before) => without(before, path),
    };
    const request = { codebase_id: this.#codebase.id, file_path: path, recursive: true };
    this.#done(change, await line.call("CodebaseService", "DeleteFile", request));
  }

  async rename(line: Line): Promise<void> {
    const isFile = this.#random.chance(70);
    const from = isFile ? this.#file() : this.#directory();
    const to = isFile ? this.#file() : this.#directory();
    const change: Change = {
      what: `rename ${from} to ${to}`,
      event: this.#event("file_renamed"),
      apply: (before) => moved(before, from, to),
    };
    const request = { codebase_id: this.#codebase.id, from_path: from, to_path: to };
    if (to === from || to.startsWith(`${from}/`)) return;
    this.#done(change, await line.call("CodebaseService", "RenameFile", request));
  }

  async rollback(line: Line): Promise<void> {
    const version = this.#random.pick(this.#versions);
    const change: Change = {
      what: `rollback to ${version}`,
      event: this.#event("version_rolled_back"),
      apply: (_, history) => history[version] ?? new Map(),
    };
    const request = { codebase_id: this.#codebase.id, version: String(version) };
    this.#done(change, await line.call("CodebaseService", "Rollback", request));
  }

  async #send(line: Line, { replaceAll }: { readonly replaceAll: boolean }): Promise<void> {
    const wanted = new Map<string, { readonly item: Message; readonly entry: Entry | undefined }>();
    for (let count = this.#random.between(2, 30); count > 0; count--) {
      const [path, item, entry] = this.#batchItem();
      wanted.set(path, { item, entry });
    }
    const change: Change = {
      what: `${replaceAll ? "replace everything" : "batch"} (${wanted.size} entries)`,
      event: this.#event("files_uploaded"),
      apply: (before) => applied(before, new Map([...wanted].map(([path, { entry }]) => [path, entry])), replaceAll),
    };
    const begin = { codebase_id: this.#codebase.id, replace_all: replaceAll };
    const chunks = [{ begin, items: [] }, ...[...wanted.values()].map(({ item }) => ({ items: [item] }))];
    const outcome = await line.attempt(change.what, () => line.client.send("CodebaseService", "BatchUpload", chunks));
    this.#done(change, outcome);
  }

  #batchItem(): readonly [string, Message, Entry | undefined] {
    const kind = this.#random.weighted({ file: 8, directory: 2, link: 1, absent: 2 });
    const path = kind === "directory" ? this.#directory() : this.#file();
    switch (kind) {
      case "file": {
        const content = this.#content();
        const file = fileOf(content, this.#random.pick([0o644, 0o755, 0o640]));
        const entry = {
          path,
          kind: "ENTRY_KIND_FILE",
          mode: file.mode,
          size: String(file.size),
          checksum: file.sha256,
        };
        return [path, { entry, data: content }, file];
      }
      case "directory": {
        const mode = this.#random.pick([0o755, 0o700, 0o750]);
        return [path, { entry: { path, kind: "ENTRY_KIND_DIRECTORY", mode } }, { kind: "directory", mode }];
      }
      case "link": {
        const target = this.#random.text(12);
        const entry = { path, kind: "ENTRY_KIND_SYMLINK", symlink_target: target };
        return [path, { entry }, { kind: "symlink", target }];
      }
      case "absent":
        return [path, { entry: { path, kind: "ENTRY_KIND_ABSENT" } }, undefined];
    }
  }

  #event(type: string): ExpectedEvent {
    return { type, codebaseId: this.#codebase.id };
  }

  #done(change: Change, outcome: Outcome): void {
    this.#codebase.record(change, outcome, ({ version }) => version);
    if (outcome.is === "acknowledged") this.#versions.push(Number(outcome.answer.version));
  }

  #directory(): string {
    const area = this.#random.chance(30) ? "shared" : this.#area;
    return this.#random.pick([`${area}/d0`, `${area}/d1`, `${area}/d1/e`]);
  }

  #file(): string {
    return `${this.#directory()}/f${this.#random.below(6)}`;
  }

  /** Never the same twice. */
  #content(): Buffer {
    const size = this.#random.pick([0, 10, 1000, 60_000, this.#random.below(LARGEST)]);
    const mark = `${this.#area} ${this.#random.below(2 ** 30)} ${this.#random.below(2 ** 30)} `;
    return Buffer.from(mark.padEnd(mark.length + size, mark));
  }
}

function applied(before: Manifest, wanted: ReadonlyMap<string, Entry | undefined>, replaceAll: boolean): Manifest {
  let after = before;
  for (const [path, entry] of wanted)
    after = entry === undefined ? without(after, path) : withEntry(after, path, entry);
  if (!replaceAll) return after;
  const named = [...wanted].filter(([, entry]) => entry !== undefined).map(([path]) => path);
  const isNeeded = (path: string): boolean => named.some((name) => name === path || name.startsWith(`${path}/`));
  return new Map([...after].filter(([path]) => isNeeded(path)));
}
