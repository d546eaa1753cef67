import type { GrpcClient, Message } from "./grpc-client.ts";

export const EVERYTHING_WRITABLE: readonly Message[] = [{ pattern: "/**", permission: "PERMISSION_WRITE" }];

export async function makeCodebase(
  client: GrpcClient,
  files: Readonly<Record<string, string | Uint8Array>> = {},
  owner = "",
): Promise<string> {
  const { id } = await client.call("CodebaseService", "CreateCodebase", { name: "sample", owner_id: owner });
  for (const [path, content] of Object.entries(files)) await client.upload(id as string, path, content);
  return id as string;
}

/** A running sandbox. */
export async function makeSandbox(client: GrpcClient, codebaseId: string, request: Message = {}): Promise<string> {
  const made = await client.call("SandboxService", "CreateSandbox", {
    codebase_id: codebaseId,
    permissions: EVERYTHING_WRITABLE,
    ...request,
  });
  await client.call("SandboxService", "StartSandbox", { sandbox_id: made.id });
  return made.id as string;
}

export async function makeSession(client: GrpcClient, sandboxId: string, request: Message = {}): Promise<string> {
  const made = await client.call("SandboxService", "CreateSession", { sandbox_id: sandboxId, ...request });
  return made.id as string;
}

export interface ExecResult extends Message {
  readonly stdout: string;
  readonly stderr: string;
  readonly exit_code: number;
  readonly session_closed: boolean;
  readonly sync_problems: readonly string[];
}

export async function exec(
  client: GrpcClient,
  sandboxId: string,
  command: string,
  request: Message = {},
): Promise<ExecResult> {
  const result = await client.call("SandboxService", "Exec", { sandbox_id: sandboxId, command, ...request });
  return result as ExecResult;
}

export async function sessionExec(client: GrpcClient, sessionId: string, command: string): Promise<ExecResult> {
  return (await client.call("SandboxService", "SessionExec", { session_id: sessionId, command })) as ExecResult;
}

/** What an owner has: one of each. */
export interface Belongings {
  readonly codebase_id: string;
  readonly sandbox_id: string;
  readonly session_id: string;
}

export async function makeBelongings(client: GrpcClient): Promise<Belongings> {
  const codebase_id = await makeCodebase(client, { "a.txt": "content\n" });
  const sandbox_id = await makeSandbox(client, codebase_id);
  // The first one of the sandbox, which has ended: it can be looked at, and nothing else.
  const { number } = await client.call("SandboxService", "StartProcess", { sandbox_id, argv: ["true"] });
  await client.call("SandboxService", "WaitProcess", { sandbox_id, number });
  return { codebase_id, sandbox_id, session_id: await makeSession(client, sandbox_id) };
}
