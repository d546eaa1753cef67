import { basename, resolve } from "node:path";
import { CodebaseService } from "@agentfense/protocol/codebase";
import { EventService } from "@agentfense/protocol/event";
import { RuntimeType, SandboxService } from "@agentfense/protocol/sandbox";
import { Role, SystemService } from "@agentfense/protocol/system";
import { type ConnectRouter, createRouterTransport, type Transport } from "@connectrpc/connect";
import type { Engine } from "../engine.ts";
import type { CallOptions } from "../model/options.ts";
import { type Entry, entryOf, putEntry, readDirectory, textOf } from "./codebase.ts";
import { codebaseHandlers } from "./codebase-service.ts";
import { type Handlers, serve } from "./handlers.ts";
import { CommandScript, type MockCommand, type MockMatcher, type MockResponse } from "./mock-command.ts";
import { normalPath } from "./path-tree.ts";
import { sandboxHandlers } from "./sandbox-service.ts";
import { World } from "./world.ts";

/** Content by path: "src/a.ts". Directories are there as far as something is in them. */
export type MockFileMap = Readonly<Record<string, string | Uint8Array>>;

type Entries = readonly (readonly [path: string, entry: Entry])[];

const OWNER = "local";

/**
 * An engine for unit tests: everything is in memory, nothing is executed, and no file of this machine is ever written.
 * Files, rules, copy-on-write, changes, sync, sessions and events are there, and answer as the real thing
 * does. Commands are what a test says they are:
 *
 * ```ts
 * const engine = MockEngine.withFiles({ "src/a.ts": "export {};\n", "secrets/key": "s3cret" });
 * engine.onCommand("npm test", { stdout: "2 failed\n", exitCode: 1 });
 * await using sandbox = await Sandbox.fromLocal(".", { engine, preset: "agent-safe" });
 * await agent.work(sandbox);
 * expect(engine.calls.map(({ command }) => command)).toEqual(["npm test"]);
 * ```
 *
 * A command is answered by the last `onCommand` that matches it. What nothing matches is "command not found" (127). What
 * needs a process (terminals, `spawn`, ports), watches, homes, keys and archives are refused with RUNTIME_UNAVAILABLE.
 */
export class MockEngine implements Engine {
  readonly name = "mock";
  readonly transport: Transport;
  readonly #script = new CommandScript();
  readonly #files: Entries | undefined;
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
    return this.#fill({ name, ownerId: OWNER }, files);
  };

  constructor(options: { readonly files?: MockFileMap | undefined } = {}) {
    this.#files = options.files && entriesOf(options.files);
    this.#world = new World(this.#script);
    this.transport = createRouterTransport((router) => this.#route(router));
  }

  /** An engine in which every directory that is opened has these files, whatever this machine has there. */
  static withFiles(files: MockFileMap): MockEngine {
    return new MockEngine({ files });
  }

  /** The commands that were asked for, oldest first. */
  get calls(): readonly MockCommand[] {
    return this.#world.commands.calls;
  }

  /**
   * Prepares an answer: a text is what the command prints, a MockAnswer says more, a function decides when it is asked.
   * The matcher sees whole command lines.
   */
  onCommand(matcher: MockMatcher, response: MockResponse): this {
    this.#script.add(matcher, response);
    return this;
  }

  /** Makes a codebase of files, and gives its id: for `Sandbox.fromCodebase`. */
  addCodebase(files: MockFileMap, options: { readonly name?: string; readonly ownerId?: string } = {}): string {
    const { name = "mock", ownerId = OWNER } = options;
    return this.#fill({ name, ownerId }, entriesOf(files));
  }

  /** The regular files that a codebase has now, as text: what a test looks at after changes were applied. */
  filesOf(codebaseId: string): Record<string, string> {
    const files = [...this.#world.codebase(codebaseId).tree].flatMap(([path, entry]) =>
      entry.kind === "file" ? [[path.slice(1), textOf(entry)] as const] : [],
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
    serve(router, EventService, () => this.#world.log.handlers());
    serve(router, SystemService, () => SYSTEM);
  }

  #fill(facts: { readonly name: string; readonly ownerId: string }, files: Entries): string {
    const codebase = this.#world.createCodebase(facts);
    codebase.change((tree) => {
      for (const [path, entry] of files) putEntry(tree, path, entry);
    });
    return codebase.message.id;
  }
}

/** Whoever asks is an administrator: the mock has no keys. */
const SYSTEM: Handlers<typeof SystemService> = {
  async getServerInfo() {
    return {
      version: "0.3.0",
      runtimes: [RuntimeType.MOCK],
      degradations: ["the mock engine runs no processes and enforces no limits but time"],
      role: Role.ADMIN,
    };
  },
};

function entriesOf(files: MockFileMap): Entries {
  return Object.entries(files).map(([path, content]) => [normalPath(path), entryOf("file", content)]);
}
