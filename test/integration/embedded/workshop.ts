import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { CodebaseService } from "@agentfense/protocol/codebase";
import { Permission } from "@agentfense/protocol/common";
import { ErrorInfoSchema } from "@agentfense/protocol/error-details";
import { EventService } from "@agentfense/protocol/event";
import { type CreateSandboxRequestSchema, SandboxService } from "@agentfense/protocol/sandbox";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Client, ConnectError, createClient } from "@connectrpc/connect";
import { EmbeddedEngine, type EmbeddedEngineOptions } from "agentfense";

export const WRITE_ALL = [{ pattern: "/**", permission: Permission.WRITE }];

/** An embedded engine, spoken to over its transport, with directories that go when it does. */
export class Workshop implements AsyncDisposable {
  readonly engine: EmbeddedEngine;
  readonly sandboxes: Client<typeof SandboxService>;
  readonly codebases: Client<typeof CodebaseService>;
  readonly events: Client<typeof EventService>;
  readonly base = mkdtempSync(join(tmpdir(), "agentfense-workshop-"));

  private constructor(engine: EmbeddedEngine) {
    this.engine = engine;
    this.sandboxes = createClient(SandboxService, engine.transport);
    this.codebases = createClient(CodebaseService, engine.transport);
    this.events = createClient(EventService, engine.transport);
  }

  static async open(options: EmbeddedEngineOptions = {}): Promise<Workshop> {
    return new Workshop(await EmbeddedEngine.open(options));
  }

  project(files: Readonly<Record<string, string>> = {}): string {
    const directory = mkdtempSync(join(this.base, "project-"));
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(directory, path)), { recursive: true });
      writeFileSync(join(directory, path), content);
    }
    return directory;
  }

  /** A running sandbox on a directory. */
  async on(
    directory: string,
    request: Omit<MessageInitShape<typeof CreateSandboxRequestSchema>, "$typeName" | "$unknown"> = {},
  ): Promise<string> {
    const codebaseId = await this.engine.openDirectory(directory);
    const { id } = await this.sandboxes.createSandbox({ codebaseId, permissions: WRITE_ALL, ...request });
    await this.sandboxes.startSandbox({ sandboxId: id });
    return id;
  }

  async run(sandboxId: string, command: string): Promise<string> {
    const { stdout, stderr } = await this.sandboxes.exec({ sandboxId, command });
    return stdout + stderr;
  }

  /** "modified /a" for each. */
  async changes(sandboxId: string): Promise<string[]> {
    const { changes } = await this.sandboxes.listChanges({ sandboxId });
    return changes.map(({ kind, path }) => `${kind} ${path}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.engine.close();
    rmSync(this.base, { recursive: true, force: true });
  }
}

/** The code of the registry that a call failed with. */
export async function failureOf(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ConnectError)) return `no failure of a call: ${String(error)}`;
  return error.findDetails(ErrorInfoSchema)[0]?.reason ?? `without a reason: ${error.message}`;
}
