import { type RunResult, type Sandbox, SandboxError } from "@agentfense/sdk";
import { E2bFailure, type FailureCode, notOffered } from "./failure.ts";
import type { Content, Entry, Files } from "./files.ts";

/** What the program below ends with when something is not as it was expected to be. */
const ENDS: Readonly<Record<number, FailureCode>> = { 44: "not_found", 45: "invalid_argument", 46: "already_exists" };

/** Each entry in seven parts. GNU's find is what prints them. */
const FORMAT = "%y\\0%s\\0%m\\0%u\\0%g\\0%T@\\0%l\\0%P\\0";

const PROGRAM = `what=$1 path=$2 more=$3
fail() { echo "$2" >&2; exit $1; }
there() { [ -e "$path" ] || [ -L "$path" ] || fail 44 "path not found: $path"; }
case $what in
  stat) there; exec find "$path" -maxdepth 0 -printf '${FORMAT}';;
  list) there; [ -d "$path" ] || fail 45 "path is not a directory: $path"
    exec find "$path/" -mindepth 1 -maxdepth "$more" -printf '${FORMAT}';;
  make) [ -d "$path" ] && exit 46; [ -e "$path" ] && fail 45 "path is not a directory: $path"; exec mkdir -p -- "$path";;
  move) there; mkdir -p -- "$(dirname -- "$more")" && exec mv -T -- "$path" "$more";;
  remove) exec rm -rf -- "$path";;
  size) there; [ -d "$path" ] && fail 45 "path is a directory: $path"; [ -r "$path" ] || fail 1 "Permission denied: $path"
    exec stat -L -c %s -- "$path";;
  write) [ -d "$path" ] && fail 45 "path is a directory: $path"
    mkdir -p -- "$(dirname -- "$path")" && exec cat > "$path";;
esac`;

/** Files of the box outside of the workspace, such as /tmp, by commands in it. */
export class BoxFiles implements Files {
  readonly #sandbox: Sandbox;
  readonly #signal: AbortSignal;

  constructor(sandbox: Sandbox, signal: AbortSignal) {
    this.#sandbox = sandbox;
    this.#signal = signal;
  }

  async stat(path: string): Promise<Entry> {
    return entriesIn(await this.#run("stat", path), () => path)[0]!;
  }

  async list(path: string, depth: number): Promise<readonly Entry[]> {
    return entriesIn(await this.#run("list", path, String(depth)), (below) => `${path === "/" ? "" : path}/${below}`);
  }

  async makeDirectory(path: string): Promise<boolean> {
    return (await this.#result("make", path)).exitCode !== 46;
  }

  async move(source: string, destination: string): Promise<void> {
    await this.#run("move", source, destination);
  }

  async remove(path: string): Promise<void> {
    await this.#run("remove", path);
  }

  async read(path: string): Promise<Content> {
    const size = Number(await this.#run("size", path));
    const execution = this.#sandbox.client.execStream(this.#sandbox.id, ["cat", "--", path], { signal: this.#signal });
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          for (;;) {
            const { done, value } = await execution.next();
            if (done || value.kind === "exit") return controller.close();
            if (value.kind === "stdout") return controller.enqueue(value.data);
          }
        },
        cancel: async () => void (await execution.return()),
      },
      { highWaterMark: 0 },
    );
    // What is in /proc says that it is empty.
    return { size: size === 0 ? undefined : size, body };
  }

  async write(
    path: string,
    content: ReadableStream<Uint8Array> | Uint8Array,
    metadata: Entry["metadata"],
  ): Promise<void> {
    if (Object.keys(metadata).length > 0) throw notOffered("metadata of files outside of /home/user and /workspace");
    await using execution = await this.#sandbox.exec(commandOf("write", path), { signal: this.#signal });
    try {
      for await (const piece of content instanceof Uint8Array ? [content] : content) await execution.sendStdin(piece);
      execution.endStdin();
    } catch (error) {
      // A program that has ended already reads nothing: how it ended says why.
      if (!(error instanceof SandboxError)) throw error;
    }
    checked("write", await execution.wait());
  }

  async #run(what: string, path: string, more = ""): Promise<string> {
    return (await this.#result(what, path, more)).stdout;
  }

  async #result(what: string, path: string, more = ""): Promise<RunResult> {
    return checked(what, await this.#sandbox.run(commandOf(what, path, more), { signal: this.#signal }));
  }
}

function commandOf(what: string, path: string, more = ""): readonly [string, ...string[]] {
  return ["sh", "-c", PROGRAM, "files", what, path, more];
}

function checked(what: string, result: RunResult): RunResult {
  if (result.exitCode === 0 || result.exitCode === 46) return result;
  const told = result.stderr.trim().slice(0, 1000) || `${what} failed`;
  const denied = /permission denied|read-only file system|operation not permitted/i.test(told);
  throw new E2bFailure(ENDS[result.exitCode] ?? (denied ? "permission_denied" : "internal"), told);
}

function entriesIn(output: string, pathOf: (below: string) => string): Entry[] {
  const parts = output.split("\0");
  const entries: Entry[] = [];
  for (let at = 0; at + 7 < parts.length; at += 8) {
    const [type, size, mode, owner = "", group = "", modified, target = "", below = ""] = parts.slice(at, at + 8);
    entries.push({
      kind: type === "d" ? "directory" : type === "l" ? "symlink" : "file",
      path: pathOf(below),
      size: Number(size),
      mode: Number.parseInt(mode ?? "0", 8),
      owner,
      group,
      modifiedAt: new Date(Number(modified) * 1000),
      target,
      metadata: {},
    });
  }
  return entries;
}
