import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { ServiceLog } from "../log.ts";
import { failureResponse, statusBody } from "../rest/failure.ts";
import { type EntranceOptions, enter } from "./front.ts";

export interface UpgradeOptions extends EntranceOptions {
  readonly log: ServiceLog;
}

/** Connections that are to become WebSockets: they pass the same rules as requests, then the door that is meant. */
export function createUpgrades(
  options: UpgradeOptions,
): (request: IncomingMessage, socket: Duplex, head: Buffer) => void {
  return (request, socket, head) => {
    socket.on("error", () => socket.destroy());
    pass(request, socket, head, options)
      .catch(async (error: unknown) => refuse(socket, await plain(failureResponse(error, { log: options.log }))))
      .catch(() => socket.destroy());
  };
}

async function pass(request: IncomingMessage, socket: Duplex, head: Buffer, options: UpgradeOptions): Promise<void> {
  const { refusal } = await enter(request, options);
  if (refusal !== undefined) {
    refuse(socket, { status: refusal.httpStatus, body: JSON.stringify(statusBody(refusal.status, refusal.message)) });
    return;
  }
  const isWebSocket = request.headers.upgrade?.toLowerCase() === "websocket";
  if (isWebSocket && (await options.ports?.upgrade(request, socket, head))) return;
  if (isWebSocket && (await options.doors?.upgrade(request, socket, head))) return;
  refuse(socket, { status: 404, body: JSON.stringify(statusBody("NOT_FOUND", "there is no WebSocket here")) });
}

interface PlainAnswer {
  readonly status: number;
  readonly body: string;
}

async function plain(response: Response): Promise<PlainAnswer> {
  return { status: response.status, body: await response.text() };
}

function refuse(socket: Duplex, { status, body }: PlainAnswer): void {
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nconnection: close\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
