import { createServer, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { ERROR_DOMAIN, ERRORS, type ErrorCode, STATUS_NUMBERS } from "@agentfense/protocol";
import { CodebaseService } from "@agentfense/protocol/codebase";
import { ErrorInfoSchema } from "@agentfense/protocol/error-details";
import { EventService } from "@agentfense/protocol/event";
import { SandboxService } from "@agentfense/protocol/sandbox";
import { SystemService } from "@agentfense/protocol/system";
import { type Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { onTestFinished } from "vitest";

export interface Script {
  readonly codebases?: Partial<ServiceImpl<typeof CodebaseService>>;
  readonly sandboxes?: Partial<ServiceImpl<typeof SandboxService>>;
  readonly events?: Partial<ServiceImpl<typeof EventService>>;
  readonly system?: Partial<ServiceImpl<typeof SystemService>>;
}

export interface ScriptedServer {
  readonly endpoint: string;
  /** Of every call, in order. */
  readonly authorizations: readonly (string | null)[];
  /** Connections so far. */
  readonly connections: number;
  /** Cuts all connections, and goes on listening. */
  cut(): void;
  end(): Promise<void>;
}

/** A server that answers as the test says, on a real port. Ends with the test. */
export async function startScripted(script: Script): Promise<ScriptedServer> {
  const authorizations: (string | null)[] = [];
  const handler = connectNodeAdapter({
    routes(router) {
      router.service(CodebaseService, script.codebases ?? {});
      router.service(SandboxService, script.sandboxes ?? {});
      router.service(EventService, script.events ?? {});
      router.service(SystemService, script.system ?? {});
    },
    interceptors: [
      (next) => (request) => {
        authorizations.push(request.header.get("authorization"));
        return next(request);
      },
    ],
  });
  const server = createServer(handler);
  const sessions = new Set<ServerHttp2Session>();
  server.on("session", (session) => sessions.add(session));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cut = (): void => {
    for (const session of sessions) session.destroy();
  };
  const end = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    cut();
    await closed;
  };
  onTestFinished(end);
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    authorizations,
    get connections() {
      return sessions.size;
    },
    cut,
    end,
  };
}

/** An error as the real server sends it. */
export function registryError(
  code: ErrorCode,
  message: string,
  hint?: string,
  details: Readonly<Record<string, string>> = {},
): ConnectError {
  const metadata: Record<string, string> = { ...details, ...(hint === undefined ? {} : { hint }) };
  const info = { desc: ErrorInfoSchema, value: { reason: code, domain: ERROR_DOMAIN, metadata } };
  return new ConnectError(message, STATUS_NUMBERS[ERRORS[code].status] as Code, undefined, [info]);
}
