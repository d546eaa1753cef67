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
import { agentfense, type Surroundings } from "../run-cli.ts";

interface Script {
  readonly codebases?: Partial<ServiceImpl<typeof CodebaseService>>;
  readonly sandboxes?: Partial<ServiceImpl<typeof SandboxService>>;
  readonly events?: Partial<ServiceImpl<typeof EventService>>;
  readonly system?: Partial<ServiceImpl<typeof SystemService>>;
}

/** A server that answers as the test says, on a real port, and the command line against it. Ends with the test. */
export async function scriptedServer(script: Script) {
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
  const end = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const session of sessions) session.destroy();
    await closed;
  };
  onTestFinished(end);
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const env = { AGENTFENSE_ENDPOINT: endpoint };
  return {
    endpoint,
    env,
    authorizations,
    end,
    run: (args: readonly string[], { env: more, ...rest }: Surroundings = {}) =>
      agentfense(args, { ...rest, env: { ...env, ...more } }),
  };
}

/** An error as the real server sends it. */
export function registryError(code: ErrorCode, message: string, hint?: string): ConnectError {
  const metadata: Record<string, string> = hint === undefined ? {} : { hint };
  const info = { desc: ErrorInfoSchema, value: { reason: code, domain: ERROR_DOMAIN, metadata } };
  return new ConnectError(message, STATUS_NUMBERS[ERRORS[code].status] as Code, undefined, [info]);
}
