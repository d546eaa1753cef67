import { levelName } from "@agentfense/permission";
import type { ViewStat } from "../../isolation/view/api.ts";
import type { Caller } from "../caller.ts";
import type { ViewEntry, WatchedChange } from "./api.ts";
import { invalid, translating } from "./errors.ts";
import { viewPath, workspacePath } from "./paths.ts";
import type { Resident } from "./resident.ts";
import type { Sync } from "./sync.ts";
import { inside, type Witness } from "./witness.ts";

/** Files as a process inside sees them. What is written here is synced as what a command writes. */
export class SandboxFiles {
  readonly #sync: Sync;
  readonly #witness: Witness;

  constructor(parts: { readonly sync: Sync; readonly witness: Witness }) {
    this.#sync = parts.sync;
    this.#witness = parts.witness;
  }

  async read(resident: Resident, path: string, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const at = viewPath(workspacePath(path));
    const { sandbox, lookAgain } = resident.requireRunning();
    if (lookAgain !== undefined) await lookAgain();
    return translatingEach(await translating(sandbox.files.read(at, { signal })));
  }

  async write(
    caller: Caller,
    resident: Resident,
    path: string,
    content: AsyncIterable<Uint8Array>,
    options: { readonly mode: number; readonly append: boolean; readonly signal?: AbortSignal },
  ): Promise<ViewEntry> {
    const at = entryPath(path);
    const { mode, append } = options;
    if (!Number.isInteger(mode) || mode < 0 || mode > 0o777)
      throw invalid("mode is a number of permission bits, at most 0777");
    const { sandbox, lookAgain } = resident.requireRunning();
    if (lookAgain !== undefined) await lookAgain();
    // A failure in the middle leaves what was written so far, as it would inside.
    const written = sandbox.files.write(viewPath(at), content, {
      // Without a mode a file that is there keeps its own.
      ...(mode === 0 ? {} : { mode }),
      append,
      signal: options.signal,
    });
    return await this.#changed(caller, resident, "file_written", { path: inside(at) }, written);
  }

  async list(
    resident: Resident,
    path: string,
    options: { readonly recursive: boolean },
  ): Promise<readonly ViewEntry[]> {
    const at = viewPath(path === "" ? "/" : workspacePath(path));
    const { sandbox, lookAgain } = resident.requireRunning();
    if (lookAgain !== undefined) await lookAgain();
    const stats = await translating(sandbox.files.list(at, options));
    return stats.map((stat) => entryOf(resident, stat));
  }

  async stat(resident: Resident, path: string): Promise<ViewEntry> {
    const at = viewPath(workspacePath(path));
    const { sandbox, lookAgain } = resident.requireRunning();
    if (lookAgain !== undefined) await lookAgain();
    return entryOf(resident, await translating(sandbox.files.stat(at)));
  }

  async makeDirectory(
    caller: Caller,
    resident: Resident,
    path: string,
    options: { readonly recursive: boolean },
  ): Promise<ViewEntry> {
    const at = entryPath(path);
    const { sandbox, lookAgain } = resident.requireRunning();
    if (lookAgain !== undefined) await lookAgain();
    const made = sandbox.files.makeDirectory(viewPath(at), options);
    return await this.#changed(caller, resident, "directory_created", { path: inside(at) }, made);
  }

  async remove(
    caller: Caller,
    resident: Resident,
    path: string,
    options: { readonly recursive: boolean },
  ): Promise<void> {
    const at = entryPath(path);
    const { sandbox, lookAgain } = resident.requireRunning();
    if (lookAgain !== undefined) await lookAgain();
    await this.#synced(caller, resident, sandbox.files.remove(viewPath(at), options));
    this.#witness.tell("file_removed", resident, caller, { data: { path: inside(at) } });
  }

  async move(caller: Caller, resident: Resident, from: string, to: string): Promise<ViewEntry> {
    const [source, target] = [entryPath(from, "from_path"), entryPath(to, "to_path")];
    const { sandbox, lookAgain } = resident.requireRunning();
    if (lookAgain !== undefined) await lookAgain();
    const moved = sandbox.files.move(viewPath(source), viewPath(target));
    const data = { path: inside(source), to_path: inside(target) };
    return await this.#changed(caller, resident, "file_moved", data, moved);
  }

  async watch(
    resident: Resident,
    path: string,
    options: { readonly recursive: boolean; readonly signal?: AbortSignal },
  ): Promise<AsyncIterable<WatchedChange>> {
    const at = viewPath(path === "" ? "/" : workspacePath(path));
    const { sandbox, lookAgain } = resident.requireRunning();
    if (lookAgain !== undefined) await lookAgain();
    return translatingEach(await translating(sandbox.files.watch(at, options)));
  }

  async #changed(
    caller: Caller,
    resident: Resident,
    type: string,
    data: Readonly<Record<string, string>>,
    work: Promise<ViewStat>,
  ): Promise<ViewEntry> {
    const stat = await this.#synced(caller, resident, work);
    this.#witness.tell(type, resident, caller, { data: { ...data, size: stat.size } });
    return entryOf(resident, stat);
  }

  /** What failed in the middle may have written before. */
  async #synced<T>(caller: Caller, resident: Resident, work: Promise<T>): Promise<T> {
    try {
      return await translating(work);
    } finally {
      await this.#sync.afterCommand(resident, caller);
    }
  }
}

/** Any path but the root, which is always there and stays. */
function entryPath(path: string, field = "path"): string {
  const normal = workspacePath(path, field);
  if (normal === "/") throw invalid(`${field} is the workspace itself`);
  return normal;
}

function entryOf(resident: Resident, stat: ViewStat): ViewEntry {
  const level = levelName(resident.policy.decide(stat.path).level);
  // What is seen without a level of its own is a directory on the way to something visible.
  return { ...stat, permission: level === "none" ? "view" : level };
}

async function* translatingEach<T>(items: AsyncIterable<T>): AsyncGenerator<T> {
  const iterator = items[Symbol.asyncIterator]();
  try {
    while (true) {
      const { done, value } = await translating(iterator.next());
      if (done) return;
      yield value;
    }
  } finally {
    await iterator.return?.();
  }
}
