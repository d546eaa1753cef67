import type { AuditLog } from "../../runtime/audit/api.ts";
import type { PortTokens } from "../../runtime/ports/tokens.ts";
import type { Sandboxes } from "../../runtime/sandboxes/api.ts";
import type { PortLinks } from "../rpc/port-handlers.ts";
import { Authenticator } from "./authentication.ts";
import { Forwarder, type ForwarderOptions } from "./forwarding.ts";
import { createFront, createUpgrades, sendStatus } from "./front.ts";
import { DEFAULT_LIMITS, OwnerRates } from "./limits.ts";
import { openListener } from "./listener.ts";
import { TOKEN_PARAMETER } from "./port-target.ts";
import { RunningCalls } from "./running-calls.ts";

export type PortServerOptions = Pick<ForwarderOptions, "sandboxes" | "tokens" | "keys" | "log">;

/**
 * Ports of sandboxes and nothing else, where there is no other HTTP: for a program without a server, and a server on a Unix socket. It
 * listens on loopback from the first link on. Other users of the machine can connect, so nobody is let in without a token.
 */
export function portServer(options: PortServerOptions): AsyncDisposable & { origin(): Promise<string> } {
  let opening: ReturnType<typeof openPortServer> | undefined;
  return {
    async origin() {
      opening ??= openPortServer(options);
      return `http://${(await opening).listener.address}`;
    },
    async [Symbol.asyncDispose]() {
      const open = await opening?.catch(() => undefined);
      open?.calls[Symbol.dispose]();
      await open?.listener.cut();
    },
  };
}

async function openPortServer(options: PortServerOptions) {
  const { log } = options;
  const calls = new RunningCalls({ concurrentCalls: 0, isRevoked: (token) => ports.isRevoked(token) });
  const ports: Forwarder = new Forwarder({
    ...options,
    authenticator: undefined,
    calls,
    rates: new OwnerRates({ perSecond: 0, burst: 1, now: () => performance.now() }),
    isDraining: () => false,
    headerBytes: DEFAULT_LIMITS.headerBytes,
    answerTimeoutMs: DEFAULT_LIMITS.uploadIdleMs,
  });
  const entrance = {
    policy: { allowedHosts: new Set<string>(), allowedOrigins: new Set<string>() },
    authenticator: new Authenticator(undefined),
    ports,
    log,
  };
  const listener = await openListener({
    address: { host: "127.0.0.1", port: 0 },
    tls: undefined,
    limits: DEFAULT_LIMITS,
    log,
    holdsProcess: false,
    answer: createFront({
      ...entrance,
      isDraining: () => false,
      next: async (request, response) => {
        if (!(await ports.answer(request, response))) sendStatus(response, 404, "NOT_FOUND", "Not Found");
      },
    }),
    upgrade: createUpgrades(entrance),
  });
  return { listener, calls };
}

export interface PortLinksOptions {
  readonly sandboxes: Pick<Sandboxes, "get">;
  readonly audit: Pick<AuditLog, "record">;
  readonly tokens: PortTokens;
  /** Where HTTP is served: "http://127.0.0.1:8080". */
  readonly origin: () => Promise<string>;
}

/** Links to ports by the address at which HTTP is served. */
export function httpPortLinks({ sandboxes, audit, tokens, origin: originOf }: PortLinksOptions): PortLinks {
  return {
    async linkTo(caller, sandboxId, port, expiresInMs) {
      const { ownerId, codebaseId } = await sandboxes.get(caller, sandboxId);
      const expiresAtMs = Date.now() + expiresInMs;
      const { keyId } = caller;
      const token = tokens.make({ sandboxId, port, expiresAtMs, keyId });
      const data = { port, expires_at: new Date(expiresAtMs).toISOString() };
      audit.record({ type: "port_link_made", ownerId, sandboxId, codebaseId, keyId, data });
      const origin = await originOf();
      const { protocol, port: own } = new URL(origin);
      const host = `${port}-${sandboxId}.localhost${own === "" ? "" : `:${own}`}`;
      const url = `${origin}/v1/sandboxes/${sandboxId}/ports/${port}/`;
      return { url, hostUrl: `${protocol}//${host}/?${TOKEN_PARAMETER}=${token}`, token, expiresAtMs };
    },
  };
}
