import { levelName } from "@agentfense/permission";
import type { NewAttributes, ViewStat } from "../../isolation/view/api.ts";
import type { Caller } from "../caller.ts";
import { invalid } from "../runtime-error.ts";
import type { Sandboxes, ViewEntry } from "./api.ts";
import { inside } from "./audit-trail.ts";
import type { Parts } from "./parts.ts";
import { translating } from "./refusals.ts";
import type { RegisteredSandbox, Running } from "./registered-sandbox.ts";
import { viewPath, workspacePath } from "./request.ts";

type Calls = Pick<
  Sandboxes,
  "readFile" | "writeFile" | "listDirectory" | "stat" | "makeDirectory" | "remove" | "move" | "watch"
>;

/** Files as a process inside sees them. What is written here is synced as what a command writes. */
export function fileCalls({ registry, sync, auditTrail }: Parts): Calls {
  /** The files of a sandbox that runs. What is asked of it is checked before that. */
  async function view<Asked>(
    caller: Caller,
    id: string,
    check: () => Asked,
  ): Promise<{
    readonly registered: RegisteredSandbox;
    readonly files: Running["sandbox"]["files"];
    readonly asked: Asked;
  }> {
    const registered = await registry.findReturned(caller, id);
    const asked = check();
    const { sandbox, lookAgain } = registered.requireRunning();
    if (lookAgain !== undefined) await lookAgain();
    return { registered, files: sandbox.files, asked };
  }

  /** What failed in the middle may have written before. */
  async function synced<T>(caller: Caller, registered: RegisteredSandbox, work: Promise<T>): Promise<T> {
    try {
      return await translating(work);
    } finally {
      await sync.afterCommand(registered, caller);
    }
  }

  async function changed(
    caller: Caller,
    registered: RegisteredSandbox,
    type: string,
    data: Readonly<Record<string, string>>,
    work: Promise<ViewStat>,
  ): Promise<ViewEntry> {
    const stat = await synced(caller, registered, work);
    auditTrail.tell(type, registered, caller, { data: { ...data, size: stat.size } });
    return entryOf(registered, stat);
  }

  return {
    async readFile(caller, id, path, signal) {
      const { files, asked } = await view(caller, id, () => workspacePath(path));
      return translatingEach(await translating(files.read(viewPath(asked), { signal })));
    },

    async writeFile(caller, id, path, content, { mode, append, attributes, signal }) {
      const { registered, files, asked } = await view(caller, id, () => {
        const at = entryPath(path);
        if (attributes !== undefined) checkAttributes(attributes);
        if (Number.isInteger(mode) && mode >= 0 && mode <= 0o777) return at;
        throw invalid("mode is a number of permission bits, at most 0777");
      });
      // Without a mode a file that is there keeps its own. A failure in the middle leaves what was written so far, as it would inside.
      const more = { ...(mode === 0 ? {} : { mode }), append, attributes, signal };
      const written = files.write(viewPath(asked), content, more);
      return await changed(caller, registered, "file_written", { path: inside(asked) }, written);
    },

    async listDirectory(caller, id, path, options) {
      const { registered, files, asked } = await view(caller, id, () => directoryPath(path));
      const stats = await translating(files.list(viewPath(asked), options));
      return stats.map((stat) => entryOf(registered, stat));
    },

    async stat(caller, id, path, options) {
      const { registered, files, asked } = await view(caller, id, () => workspacePath(path));
      return entryOf(registered, await translating(files.stat(viewPath(asked), options)));
    },

    async makeDirectory(caller, id, path, options) {
      const { registered, files, asked } = await view(caller, id, () => entryPath(path));
      const made = files.makeDirectory(viewPath(asked), options);
      return await changed(caller, registered, "directory_created", { path: inside(asked) }, made);
    },

    async remove(caller, id, path, options) {
      const { registered, files, asked } = await view(caller, id, () => entryPath(path));
      await synced(caller, registered, files.remove(viewPath(asked), options));
      auditTrail.tell("file_removed", registered, caller, { data: { path: inside(asked) } });
    },

    async move(caller, id, from, to) {
      const { registered, files, asked } = await view(caller, id, () => {
        return { source: entryPath(from, "from_path"), target: entryPath(to, "to_path") };
      });
      const moved = files.move(viewPath(asked.source), viewPath(asked.target));
      const data = { path: inside(asked.source), to_path: inside(asked.target) };
      return await changed(caller, registered, "file_moved", data, moved);
    },

    async watch(caller, id, path, options) {
      const { files, asked } = await view(caller, id, () => directoryPath(path));
      return translatingEach(await translating(files.watch(viewPath(asked), options)));
    },
  };
}

const LARGEST_ATTRIBUTE = { name: 250, value: 64 * 1024 };

function checkAttributes({ values, prefix }: NewAttributes): void {
  for (const name of [...Object.keys(values), ...(prefix === "" ? [] : [prefix])]) {
    if (name !== "" && !name.includes("\0") && Buffer.byteLength(name) <= LARGEST_ATTRIBUTE.name) continue;
    throw invalid(`the name of an attribute has 1 to ${LARGEST_ATTRIBUTE.name} bytes, and no NUL`);
  }
  for (const [name, value] of Object.entries(values)) {
    if (Buffer.byteLength(value) <= LARGEST_ATTRIBUTE.value) continue;
    throw invalid(`the attribute ${name} has more than ${LARGEST_ATTRIBUTE.value} bytes`);
  }
}

/** Any path but the root, which is always there and stays. */
function entryPath(path: string, field = "path"): string {
  const normal = workspacePath(path, field);
  if (normal === "/") throw invalid(`${field} is the workspace itself`);
  return normal;
}

/** "" is the root. */
function directoryPath(path: string): string {
  return path === "" ? "/" : workspacePath(path);
}

function entryOf(registered: RegisteredSandbox, stat: ViewStat): ViewEntry {
  const level = levelName(registered.policy.decide(stat.path).level);
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
