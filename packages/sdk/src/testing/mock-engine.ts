import { basename, resolve } from "node:path";
import { CodebaseService } from "@agentfense/protocol/codebase";
import { EventService } from "@agentfense/protocol/event";
import { SandboxService } from "@agentfense/protocol/sandbox";
import { SystemService } from "@agentfense/protocol/system";
import { type ConnectRouter, createRouterTransport, type Transport } from "@connectrpc/connect";
import type { Engine } from "../engine.ts";
import type { CallOptions } from "../model/options.ts";
import { filePath } from "./codebases/codebase-paths.ts";
import { readDirectory } from "./codebases/disk.ts";
import type { Wanted } from "./codebases/draft.ts";
import { fileEntry } from "./files/entry.ts";
import { CommandScript, type MockCommand, type MockMatcher, type MockResponse } from "./mock-command.ts";
import { codebaseHandlers } from "./rpc/codebase-service.ts";
import { eventHandlers } from "./rpc/event-service.ts";
import { serve } from "./rpc/handlers.ts";
import { sandboxHandlers } from "./rpc/sandbox-service.ts";
import { systemHandlers } from "./rpc/system-service.ts";
import { World } from "./world.ts";

/** Content by path: "src/a.ts". Directories are there as far as something is in them. */
export type MockFileMap = Readonly<Record<string, string | Uint8Array>>;

const OWNER = "local";

/**
 * An engine for unit tests: everything is in memory, nothing is executed, and no file of this machine is ever written.
 * It speaks the whole contract, and gives the answers of the real thing: rules, copy-on-write, versions, sessions,
 * events, errors.
 *
 * ```ts
 * const engine = MockEngine.withFiles({ "src/a.ts": "export {};\n", "secrets/key": "s3cret" });
 * engine.onCommand("npm test", { stdout: "2 failed\n", exitCode: 1 });
 * await using sandbox = await Sandbox.fromLocal(".", { engine, preset: "agent-safe" });
 * await agent.work(sandbox);
 * expect(engine.calls.map(({ command }) => command)).toEqual(["npm test", "cat src/a.ts"]);
 * ```
 *
 * A command is answered by the last `onCommand` that matches it. What nothing matches goes to a little shell over the
 * sandbox's files, which has `echo printf cat ls pwd cd true false exit sleep export unset env mkdir rmdir rm mv cp
 * touch test [ grep wc head tail sort seq yes tee bash -c`, lists (`;` `&&` `||`), pipes, redirections (`>` `>>` `<`
 * `2>` `2>&1`), quotes, `$NAME`, `${NAME}`, `$?`, `*` `?` `[…]` for files, and comments. Other programs are "command
 * not found" (127), other syntax is refused (2).
 */
export class MockEngine implements Engine {
  readonly name = "mock";
  readonly transport: Transport;
  readonly #script = new CommandScript();
  readonly #files: readonly Wanted[] | undefined;
  #world: World;

  /**
   * A codebase with the files of a directory: those of `withFiles` if there are any, else what is on the disk now.
   * Applying changes the codebase only.
   */
  readonly openDirectory = async (
    directory: string,
    options: CallOptions & { readonly name?: string } = {},
  ): Promise<string> => {
    const files = this.#files ?? (await readDirectory(resolve(directory), options.signal));
    options.signal?.throwIfAborted();
    const name = options.name ?? (basename(resolve(directory)) || "mock");
    return this.#world.fillCodebase({ name, ownerId: OWNER }, files).id;
  };

  constructor(options: { readonly files?: MockFileMap | undefined } = {}) {
    this.#files = options.files && wantedOf(options.files);
    this.#world = new World(this.#script);
    this.transport = createRouterTransport((router) => this.#route(router));
  }

  /** An engine in which every directory that is opened has these files, whatever this machine has there. */
  static withFiles(files: MockFileMap): MockEngine {
    return new MockEngine({ files });
  }

  /** The commands that were asked for, oldest first. */
  get calls(): readonly MockCommand[] {
    return this.#world.calls;
  }

  /**
   * Prepares an answer: a text is what the command prints, a MockAnswer says more, a function decides when it is asked.
   * The matcher sees whole command lines, and the single commands of a line that nothing matches: one for "npm test"
   * also answers in `cd web && npm test`.
   */
  onCommand(matcher: MockMatcher, response: MockResponse): this {
    this.#script.add(matcher, response);
    return this;
  }

  /** Makes a codebase of files, and gives its id: for `Sandbox.fromCodebase`. */
  addCodebase(files: MockFileMap, options: { readonly name?: string; readonly ownerId?: string } = {}): string {
    const { name = "mock", ownerId = OWNER } = options;
    return this.#world.fillCodebase({ name, ownerId }, wantedOf(files)).id;
  }

  /** The regular files that a codebase has now, as text: what a test looks at after changes were applied. */
  filesOf(codebaseId: string): Record<string, string> {
    const files = [...this.#world.codebase(codebaseId).tree].flatMap(([path, entry]) =>
      entry.kind === "file" ? [[path.slice(1), Buffer.from(entry.content).toString("utf8")] as const] : [],
    );
    return Object.fromEntries(files);
  }

  /** As new: ends what runs, and forgets sandboxes, codebases, events, calls and prepared answers. */
  reset(): void {
    this.#world.end();
    this.#script.clear();
    this.#world = new World(this.#script);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#world.end();
  }

  #route(router: ConnectRouter): void {
    // Asked at each call: a reset puts another world behind the same transport.
    serve(router, CodebaseService, () => codebaseHandlers(this.#world));
    serve(router, SandboxService, () => sandboxHandlers(this.#world));
    serve(router, EventService, () => eventHandlers(this.#world));
    serve(router, SystemService, () => systemHandlers(this.#world));
  }
}

function wantedOf(files: MockFileMap): Wanted[] {
  return Object.entries(files).map(([path, content]) => ({
    path: filePath(path),
    entry: fileEntry(typeof content === "string" ? Buffer.from(content) : content),
  }));
}
