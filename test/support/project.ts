import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect } from "vitest";
import { type ExecResult, exec, makeSession, sessionExec } from "./belongings.ts";
import { GrpcClient, type Message } from "./grpc-client.ts";
import { type ServerOptions, TestServer } from "./server.ts";

export type Level = "none" | "view" | "read" | "write";

/** Patterns and their levels, later ones over earlier ones of the same rank. */
export type Levels = Readonly<Record<string, Level>>;

/** What there is, by path: the content of a file, "-> target" of a link, "/" for a directory. */
export type State = Readonly<Record<string, string>>;

export interface Outcome extends Message {
  readonly change: { readonly kind: string; readonly path: string };
  readonly applied: boolean;
  readonly reason: string;
  readonly conflict: boolean;
}

export interface VersionInfo extends Message {
  readonly version: string;
  readonly origin: string;
  readonly sandbox_id: string;
  readonly changes: readonly { readonly kind: string; readonly path: string }[];
  readonly conflicts: readonly {
    readonly path: string;
    readonly replaced_version: string;
    readonly replaced_sandbox_id: string;
  }[];
}

export function rules(levels: Levels): Message[] {
  return Object.entries(levels).map(([pattern, level]) => ({
    pattern,
    permission: `PERMISSION_${level.toUpperCase()}`,
  }));
}

/** A server of the test file's own, and projects on it. */
export interface Ground {
  readonly server: TestServer;
  readonly grpc: GrpcClient;
  project(files?: Readonly<Record<string, string | Uint8Array>>): Promise<Project>;
}

/** Starts a server before the tests of this file. */
export function serveProjects(options: () => ServerOptions | Promise<ServerOptions> = () => ({})): Ground {
  let server: TestServer;
  let grpc: GrpcClient;
  beforeAll(async () => {
    server = await TestServer.start(await options());
    grpc = new GrpcClient(server.grpc);
  });
  afterAll(async () => {
    grpc?.[Symbol.dispose]();
    await server?.[Symbol.asyncDispose]();
  });
  return {
    get server() {
      return server;
    },
    get grpc() {
      return grpc;
    },
    project: (files = {}) => Project.make(server, grpc, files),
  };
}

/** A codebase, the sandboxes on it, and where the server keeps both on the disk. */
export class Project {
  readonly id: string;
  readonly grpc: GrpcClient;
  readonly #directory: string;

  constructor(directory: string, grpc: GrpcClient, id: string) {
    this.#directory = directory;
    this.grpc = grpc;
    this.id = id;
  }

  static async make(
    server: TestServer,
    grpc: GrpcClient,
    files: Readonly<Record<string, string | Uint8Array>> = {},
  ): Promise<Project> {
    const { id } = await grpc.call("CodebaseService", "CreateCodebase", { name: "project", owner_id: "tester" });
    const project = new Project(server.directory, grpc, id as string);
    if (Object.keys(files).length > 0) await project.write(files);
    return project;
  }

  /** The same on a server that was started again. */
  on(grpc: GrpcClient): Project {
    return new Project(this.#directory, grpc, this.id);
  }

  /** Where the codebase's files are. */
  get tree(): string {
    return join(this.#directory, "codebases", this.id, "tree");
  }

  /** Where a sandbox's changes are. */
  delta(sandboxId: string): string {
    return join(this.#directory, "mounts", "delta", sandboxId, "tree");
  }

  /** A sandbox that runs; its id. Everything is writable but what the levels say. */
  async sandbox(levels: Levels = {}, request: Message = {}): Promise<string> {
    const made = await this.grpc.call("SandboxService", "CreateSandbox", {
      codebase_id: this.id,
      permissions: rules({ "**": "write", ...levels }),
      ...request,
    });
    await this.start(made.id as string);
    return made.id as string;
  }

  async start(sandboxId: string): Promise<void> {
    await this.grpc.call("SandboxService", "StartSandbox", { sandbox_id: sandboxId });
  }

  async stop(sandboxId: string): Promise<void> {
    await this.grpc.call("SandboxService", "StopSandbox", { sandbox_id: sandboxId });
  }

  async destroy(sandboxId: string): Promise<void> {
    await this.grpc.call("SandboxService", "DestroySandbox", { sandbox_id: sandboxId });
  }

  run(sandboxId: string, command: string, request: Message = {}): Promise<ExecResult> {
    return exec(this.grpc, sandboxId, command, request);
  }

  /** A shell that goes on between commands. */
  async session(sandboxId: string): Promise<(command: string) => Promise<ExecResult>> {
    const session = await makeSession(this.grpc, sandboxId);
    return (command) => sessionExec(this.grpc, session, command);
  }

  /** One version with all of these; null deletes. */
  async write(files: Readonly<Record<string, string | Uint8Array | null>>): Promise<number> {
    const begin = { codebase_id: this.id };
    const items = Object.entries(files).map(([path, content]) =>
      content === null
        ? { entry: { path, kind: "ENTRY_KIND_ABSENT" } }
        : {
            entry: { path, kind: "ENTRY_KIND_FILE", size: String(Buffer.byteLength(content)) },
            data: Buffer.from(content),
          },
    );
    const answer = await this.grpc.send("CodebaseService", "BatchUpload", [
      { begin },
      ...items.map((item) => ({ items: [item] })),
    ]);
    return Number(answer.version);
  }

  async setLevels(sandboxId: string, levels: Levels): Promise<void> {
    const permissions = rules({ "**": "write", ...levels });
    await this.grpc.call("SandboxService", "UpdatePermissions", { sandbox_id: sandboxId, permissions });
  }

  async apply(sandboxId: string, request: Message = {}): Promise<{ version: number; outcomes: readonly Outcome[] }> {
    const answer = await this.grpc.call("SandboxService", "ApplyChanges", { sandbox_id: sandboxId, ...request });
    return { version: Number(answer.version), outcomes: answer.outcomes as Outcome[] };
  }

  /** "modified /a.txt" and so on: what has not been synced. */
  async changes(sandboxId: string): Promise<string[]> {
    const { changes } = await this.grpc.call("SandboxService", "ListChanges", { sandbox_id: sandboxId });
    return (changes as { kind: string; path: string }[]).map(
      ({ kind, path }) => `${kind.replace("CHANGE_KIND_", "").toLowerCase()} ${path}`,
    );
  }

  async version(version: number): Promise<VersionInfo> {
    return (await this.grpc.call("CodebaseService", "GetVersion", { codebase_id: this.id, version })) as VersionInfo;
  }

  async newest(): Promise<number> {
    return Number((await this.grpc.call("CodebaseService", "GetCodebase", { codebase_id: this.id })).version);
  }

  /** Events about this codebase's sandboxes, oldest first; only their data. */
  async events(type: string, sandboxId?: string): Promise<Record<string, unknown>[]> {
    const query = sandboxId === undefined ? { codebase_id: this.id } : { sandbox_id: sandboxId };
    const { events } = await this.grpc.call("EventService", "ListEvents", { ...query, types: [type], page_size: 1000 });
    return (events as { data: unknown }[]).map(({ data }) => plain({ structValue: data }) as Record<string, unknown>);
  }

  /** "/workspace/a.txt: level read" and so on: what syncs refused, by the audit log. */
  async refusals(sandboxId: string): Promise<string[]> {
    return (await this.events("sync_refused", sandboxId)).map(({ path, reason }) => `${path}: ${reason}`);
  }

  /** What the codebase is: the same on the disk and by the API, or it fails. */
  async state(): Promise<State> {
    const { files } = await this.grpc.call("CodebaseService", "ListFiles", { codebase_id: this.id, recursive: true });
    const listed = (files as { path: string; is_dir: boolean; symlink_target: string; checksum: string }[]).map(
      ({ path, is_dir, symlink_target, checksum }) =>
        [path, is_dir ? "/" : symlink_target === "" ? checksum : `-> ${symlink_target}`] as const,
    );
    const state = stateOf(this.tree);
    const hashed = Object.entries(state).map(([path, what]) => {
      const isFile = lstatSync(join(this.tree, path)).isFile();
      return [
        path,
        isFile
          ? createHash("sha256")
              .update(readFileSync(join(this.tree, path)))
              .digest("hex")
          : what,
      ];
    });
    expect(Object.fromEntries(listed)).toEqual(Object.fromEntries(hashed));
    return state;
  }
}

/** A directory on the disk, following nothing. */
export function stateOf(directory: string): State {
  const state: Record<string, string> = {};
  const walk = (below: string): void => {
    for (const name of readdirSync(join(directory, below)).sort()) {
      const path = below === "" ? name : `${below}/${name}`;
      const entry = lstatSync(join(directory, path));
      if (entry.isDirectory()) {
        state[path] = "/";
        walk(path);
      } else if (entry.isSymbolicLink()) state[path] = `-> ${readlinkSync(join(directory, path))}`;
      else state[path] = entry.isFile() ? readFileSync(join(directory, path), "utf8") : "special";
    }
  };
  walk("");
  return state;
}

/** google.protobuf.Value as JavaScript has it. */
function plain(value: Message): unknown {
  if (value.structValue !== undefined && value.structValue !== null) {
    const { fields } = value.structValue as { fields: Record<string, Message> };
    return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, plain(field)]));
  }
  if (value.listValue !== undefined && value.listValue !== null) {
    return (value.listValue as { values: Message[] }).values.map(plain);
  }
  return value.stringValue ?? value.numberValue ?? value.boolValue ?? null;
}
