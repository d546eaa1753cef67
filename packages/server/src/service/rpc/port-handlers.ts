import type { Socket } from "node:net";
import type { PortData } from "@agentfense/protocol/sandbox";
import type { Caller } from "../../runtime/caller.ts";
import { RuntimeError } from "../../runtime/runtime-error.ts";
import type { Sandboxes } from "../../runtime/sandboxes/api.ts";
import type { SandboxHandlers } from "./handlers.ts";
import { durationMs, invalid, required, timestampMessage } from "./messages/fields.ts";
import { chunked, readFirst, unread } from "./streams.ts";

/** Where a port is reached over HTTP. */
export interface PortLink {
  readonly url: string;
  readonly hostUrl: string;
  readonly token: string;
  readonly expiresAtMs: number;
}

/** Makes links to ports of sandboxes that the caller may see. */
export interface PortLinks {
  linkTo(caller: Caller, sandboxId: string, port: number, expiresInMs: number): Promise<PortLink>;
}

const HOUR_MS = 3_600_000;
const LONGEST_MS = 7 * 24 * HOUR_MS;

export function portHandlers(sandboxes: Sandboxes, links: PortLinks) {
  return {
    async getPort({ sandboxId, port, expiresIn }, { caller }) {
      const expiresInMs = durationMs(expiresIn, "expires_in") ?? HOUR_MS;
      if (expiresInMs > LONGEST_MS) throw invalid("expires_in is a week at most", { field: "expires_in" });
      const { expiresAtMs, ...link } = await links.linkTo(caller, sandboxId, portOf(port), expiresInMs);
      return { sandboxId, port, ...link, expiresAt: timestampMessage(expiresAtMs) };
    },

    async waitForPort({ sandboxId, port, timeout }, { caller, signal }) {
      const options = { timeoutMs: durationMs(timeout, "timeout"), signal };
      await sandboxes.waitForPort(caller, sandboxId, portOf(port), options);
    },

    async *forwardPort(requests, { caller, signal }) {
      const inputs = requests[Symbol.asyncIterator]();
      const { opening } = await readFirst(inputs, "open", ({ content }) =>
        content.case === "open" ? content.value : undefined,
      );
      const { sandboxId, port } = opening;
      required(sandboxId, "sandbox_id", "in open");
      const socket = await sandboxes.connect(caller, sandboxId, portOf(port), signal);
      const cut = (): void => void socket.destroy();
      signal.addEventListener("abort", cut, { once: true });
      const sending = send(unread(inputs), socket);
      sending.catch(() => {}); // it ends the connection with its error, which is met below
      try {
        yield {};
        for await (const data of chunked(socket)) yield { content: { case: "data", value: data } };
        yield { content: { case: "end", value: true } };
        await sending;
      } catch (error) {
        throw isBreak(error) ? new RuntimeError("PORT_CLOSED", "the connection broke off", { cause: error }) : error;
      } finally {
        signal.removeEventListener("abort", cut);
        socket.destroy();
      }
    },
  } satisfies SandboxHandlers;
}

const BREAKS: ReadonlySet<unknown> = new Set(["ECONNRESET", "EPIPE", "ERR_STREAM_PREMATURE_CLOSE"]);

/** The sandbox, or a program in it, has ended the connection. */
function isBreak(error: unknown): boolean {
  return error instanceof Error && "code" in error && BREAKS.has(error.code);
}

function portOf(port: number): number {
  if (port < 1 || port > 65_535) throw invalid(`port must be from 1 to 65535, not ${port}`, { field: "port" });
  return port;
}

/** What arrives goes into the connection, as fast as it is taken there. */
async function send(inputs: AsyncIterable<PortData>, socket: Socket): Promise<void> {
  socket.on("error", () => {}); // whoever reads is told
  try {
    for await (const { content } of inputs) {
      if (content.case === "open") throw invalid("open already received");
      if (content.case === "end") break;
      if (content.case === "data" && !socket.write(content.value)) await drained(socket);
    }
    socket.end();
  } catch (error) {
    socket.destroy(error as Error);
    throw error;
  }
}

/** Also when it is closed: then the rest goes nowhere. */
async function drained(socket: Socket): Promise<void> {
  if (socket.destroyed) return;
  await new Promise<void>((resolve) => {
    const over = (): void => {
      socket.off("drain", over).off("close", over);
      resolve();
    };
    socket.on("drain", over).on("close", over);
  });
}
