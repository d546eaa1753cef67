import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import type { QuotaUse } from "../../isolation/filesystem/quota.ts";
import { isLayerName, newLayerName } from "../ids.ts";
import { RuntimeError } from "../runtime-error.ts";
import { BENEATH, layersBeneath, layersDirectory } from "./delta-work.ts";
import type { Parts } from "./parts.ts";
import type { RegisteredSandbox } from "./registered-sandbox.ts";

// What snapshots froze, beside the deltas (isolation/filesystem/freezing.ts has the format):
//
//   <deltas>/layers/<name>/        a frozen delta
//   <deltas>/layers/<name>/size    what it takes of a quota, as JSON, once that was found out
//   <deltas>/layers/<name>.next    a delta that will take another's place
//   <deltas>/layers/<name>.gone    a layer that is being removed
//
// Who lies on a layer says so on the disk, snapshots in the store. One that nobody names is removed: when the last that did is gone, and
// when the server starts.

/** So many layers are looked through for a name at most. */
const MOST_LAYERS = 32;

type LayersParts = Pick<Parts, "deltaDirectory" | "deltaOf" | "deltas" | "registry" | "store" | "log">;

export class SnapshotLayers {
  readonly #parts: LayersParts;
  readonly #directory: string;
  #users = 0;
  #isDue = false;
  #sweeping: Promise<void> | undefined;

  constructor(parts: LayersParts) {
    this.#parts = parts;
    this.#directory = layersDirectory(parts.deltaDirectory);
  }

  /** While somebody is about to lie on a layer none is removed. Users do not wait for one another. */
  async using<T>(work: () => Promise<T>): Promise<T> {
    while (this.#sweeping !== undefined) await this.#sweeping;
    this.#users += 1;
    try {
      return await work();
    } finally {
      this.#users -= 1;
      if (this.#users === 0 && this.#isDue) void this.sweep();
    }
  }

  /** Directories of the layers that a sandbox lies on, top first. */
  beneath(sandbox: Pick<RegisteredSandbox, "id">): Promise<readonly string[]> {
    return layersBeneath(this.#parts.deltaOf(sandbox));
  }

  /** A layer, and those that it lies on. */
  async chain(layer: string): Promise<readonly string[]> {
    const directory = join(this.#directory, layer);
    return [directory, ...(await layersBeneath(directory, this.#directory))];
  }

  /** Freezes what the sandbox has now; gives the name of the layer, the one that is there when nothing came since. */
  async freeze(sandbox: RegisteredSandbox, codebase: string): Promise<string> {
    const delta = this.#parts.deltaOf(sandbox);
    const beneath = await this.beneath(sandbox);
    const [top] = beneath;
    if (top !== undefined && (await this.#parts.deltas.hasNothing(delta))) return basename(top);
    if (beneath.length >= MOST_LAYERS) throw tooDeep();
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const layer = join(this.#directory, newLayerName());
    const { running } = sandbox;
    if (running === undefined) {
      const names = [layer, ...beneath].map((each) => basename(each));
      await this.#parts.deltas.freeze({ delta, layer, beneath: names, codebase });
    } else {
      const { used } = await running.sandbox.freeze({ layer });
      if (used !== undefined) await this.#noteSize(layer, less(used, await this.used(beneath)));
    }
    return basename(layer);
  }

  /** Makes the delta of a sandbox that does not run lie on a layer, with nothing in it. */
  async lay(sandbox: Pick<RegisteredSandbox, "id">, layer: string): Promise<void> {
    const delta = this.#parts.deltaOf(sandbox);
    const next = join(this.#directory, `${newLayerName()}.next`);
    await mkdir(next, { recursive: true, mode: 0o700 });
    const names = (await this.chain(layer)).map((each) => basename(each));
    await writeFile(join(next, BENEATH), `${names.join("\n")}\n`, { mode: 0o600 });
    // The old one goes first: a crash leaves the sandbox as it was, or without what it had since the snapshot.
    await this.#parts.deltas.remove(delta);
    await rename(next, delta);
  }

  /** What layers take of a quota together. */
  async used(layers: readonly string[]): Promise<QuotaUse> {
    let [bytes, files] = [0, 0];
    for (const layer of layers) {
      const size = (await readSize(layer)) ?? (await this.#measure(layer));
      bytes += size.bytes;
      files += size.files;
    }
    return { bytes, files };
  }

  /** Removes what nobody lies on: now, or when those who are about to lie on something have done so. Never fails. */
  sweep(): Promise<void> {
    this.#isDue = true;
    if (this.#users > 0) return Promise.resolve();
    this.#sweeping ??= this.#putAside().finally(() => {
      this.#sweeping = undefined;
    });
    return this.#sweeping;
  }

  // What is put aside is out of reach; removing it takes as long as it is large.
  async #putAside(): Promise<void> {
    this.#isDue = false;
    try {
      const present = (await readdir(this.#directory).catch(() => [])).filter(isOurs);
      if (present.length === 0) return;
      const used = await this.#used();
      for (const name of present.filter((each) => !used.has(each))) {
        const aside = join(this.#directory, isLayerName(name) ? `${name}.gone` : name);
        if (isLayerName(name)) await rename(join(this.#directory, name), aside);
        this.#parts.deltas.remove(aside).catch((error: unknown) => this.#couldNot(error));
      }
    } catch (error) {
      this.#couldNot(error);
    }
  }

  async #used(): Promise<ReadonlySet<string>> {
    const used = new Set<string>();
    for (const sandbox of this.#parts.registry) {
      for (const each of await this.beneath(sandbox)) used.add(basename(each));
    }
    for (const { layer } of await this.#parts.store.listSnapshots({})) {
      for (const each of await this.chain(layer)) used.add(basename(each));
    }
    return used;
  }

  #couldNot(error: unknown): void {
    this.#parts.log({ level: "warn", message: "layers that nobody uses could not be removed", error });
  }

  async #measure(layer: string): Promise<QuotaUse> {
    const size = await this.#parts.deltas.measureLayer(layer);
    await this.#noteSize(layer, size);
    return size;
  }

  async #noteSize(layer: string, size: QuotaUse): Promise<void> {
    const place = join(layer, SIZE);
    await writeFile(`${place}.new`, JSON.stringify(size), { mode: 0o600 });
    await rename(`${place}.new`, place);
  }
}

const SIZE = "size";

function isOurs(name: string): boolean {
  return isLayerName(name.replace(/\.(next|gone)$/, ""));
}

async function readSize(layer: string): Promise<QuotaUse | undefined> {
  try {
    return JSON.parse(await readFile(join(layer, SIZE), "utf8")) as QuotaUse;
  } catch {
    return undefined;
  }
}

function less(used: QuotaUse, beneath: QuotaUse): QuotaUse {
  const part = (name: keyof QuotaUse): number => Math.max(0, used[name] - beneath[name]);
  return { bytes: part("bytes"), files: part("files") };
}

function tooDeep(): RuntimeError {
  return new RuntimeError("LIMIT_EXCEEDED", `a sandbox lies on at most ${MOST_LAYERS} snapshots`, {
    details: { limit: String(MOST_LAYERS) },
    hint: "restore an earlier one, or begin anew from the codebase",
  });
}
