import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from "node:http";
import { createSecureServer } from "node:http2";
import { type AddressInfo, createServer, isIP, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { LOOPBACK_NAMES } from "./gate-listeners.ts";

/** What a name resolves to: the same each time, or what the number of the question makes of it. */
export type Answer = readonly string[] | ((question: number) => readonly string[]);

/** Public addresses that stand for servers here. */
export const GOOD_ADDRESS = "93.184.216.34";
export const GOOD_ADDRESS_6 = "2606:2800:220:1:248:1893:25c8:1946";
export const EVIL_ADDRESS = "93.184.216.66";
/** Nobody listens there. */
export const DEAD_ADDRESS = "93.184.216.99";

const STAND_INS = {
  [GOOD_ADDRESS]: "127.0.0.1",
  [GOOD_ADDRESS_6]: "127.0.0.1",
  [EVIL_ADDRESS]: "127.0.0.2",
  [DEAD_ADDRESS]: "127.0.0.3",
};

export interface SeenRequest {
  readonly server: "good" | "evil";
  readonly method: string;
  readonly url: string;
  /** Names and values in turn, as they came. */
  readonly headers: readonly string[];
}

export interface InternetOptions {
  /** What the good server has for a host, in place of its own pages. */
  readonly site?: (host: string) => RequestListener | undefined;
  /** What the good server does with connections to port 22, in place of an echo. */
  readonly ssh?: ((socket: Socket) => void) | undefined;
}

/**
 * An internet on this machine's loopback: a name server, a certificate authority, web servers with and without TLS (HTTP/1.1, HTTP/2,
 * WebSocket), one that echoes bytes, and the same again as the evil server. What reaches them is recorded.
 */
export async function openInternet(
  names: Readonly<Record<string, Answer>>,
  { site = () => undefined, ssh = (socket) => void socket.pipe(socket) }: InternetOptions = {},
) {
  const certificates = makeCertificates([...Object.keys(names), "evil.test"]);
  const seen: SeenRequest[] = [];
  const sockets = new Set<Duplex>();
  const servers: Server[] = [];
  const listen = async (server: Server, port: number, address: string): Promise<number> => {
    servers.push(server);
    server.on("connection", (socket: Socket) => {
      sockets.add(socket);
      socket.on("error", () => {}).once("close", () => sockets.delete(socket));
    });
    server.listen(port, address);
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  };
  const open = async (kind: SeenRequest["server"], address: string, ports: readonly number[]): Promise<number[]> => {
    const serve = webPages(kind, seen, site);
    const plain = createHttpServer(serve).on("upgrade", upgrade(kind, seen));
    const secure = createSecureServer({ ...certificates, allowHTTP1: true }, serve as never).on(
      "upgrade",
      upgrade(kind, seen),
    );
    const other = createServer({ allowHalfOpen: true }, ssh);
    const opened: number[] = [];
    for (const [index, server] of [plain, secure as unknown as Server, other].entries()) {
      opened.push(await listen(server, ports[index] ?? 0, address));
    }
    return opened;
  };
  const ports = await open("good", "127.0.0.1", []);
  await open("evil", "127.0.0.2", ports);
  const dns = await nameServer(names);
  const [http = 0, tls = 0, tcp = 0] = ports;
  return {
    /** What a gate is given. */
    seam: {
      nameServers: [`127.0.0.1:${dns.port}`],
      addresses: STAND_INS,
      ports: { 80: http, 443: tls, 22: tcp },
      network: LOOPBACK_NAMES,
    },
    ca: certificates.ca,
    /** The names that somebody asked for. */
    questions: dns.questions,
    seen,
    /** Connections that are open. */
    get connections(): number {
      return sockets.size;
    },
    async [Symbol.asyncDispose](): Promise<void> {
      dns.close();
      const closed = servers.map((server) => once(server, "close"));
      for (const server of servers) server.close();
      for (const socket of sockets) socket.destroy();
      await Promise.all(closed);
    },
  };
}

export type Internet = Awaited<ReturnType<typeof openInternet>>;

function webPages(
  server: SeenRequest["server"],
  seen: SeenRequest[],
  site: NonNullable<InternetOptions["site"]>,
): RequestListener {
  const waiting: ServerResponse[] = [];
  const pages: Record<string, (request: IncomingMessage, response: ServerResponse) => void> = {
    // An event at once, and another when somebody asks for it.
    "/events": (_request, response) => {
      response.writeHead(200, { "Content-Type": "text/event-stream" }).write("data: first\n\n");
      waiting.push(response);
    },
    "/events/next": (_request, response) => {
      waiting.shift()?.end("data: second\n\n");
      response.end();
    },
    "/never": () => {},
    "/redirect": (request, response) => {
      const to = new URL(request.url!, "http://any").searchParams.get("to")!;
      response.writeHead(302, { Location: to }).end();
    },
    "/broken": (request) => request.socket.destroy(),
    "/early": (_request, response) => response.writeHead(413).end("too much"),
    "/large": (request, response) => {
      let left = Number(new URL(request.url!, "http://any").searchParams.get("bytes"));
      const piece = Buffer.alloc(64 * 1024, "x");
      const more = (): void => {
        while (left > 0) {
          const size = Math.min(left, piece.length);
          left -= size;
          if (!response.write(piece.subarray(0, size))) return void response.once("drain", more);
        }
        response.end();
      };
      more();
    },
    "/body": (request, response) => {
      const hash = createHash("sha256");
      let bytes = 0;
      request.on("data", (piece: Buffer) => {
        bytes += piece.length;
        hash.update(piece);
      });
      request.on("end", () => response.end(JSON.stringify({ bytes, sha256: hash.digest("hex") })));
    },
  };
  return (request, response) => {
    const { method = "", url = "", rawHeaders } = request;
    seen.push({ server, method, url, headers: rawHeaders });
    const page = site(request.headers.host ?? String(request.headers[":authority"])) ?? pages[url.split("?")[0]!];
    if (page !== undefined) page(request, response);
    else {
      request.resume();
      response.setHeader("Set-Cookie", ["one=1", "two=2"]);
      response.end(`${server} ${method} ${url}`);
    }
  };
}

/** Takes a WebSocket and echoes its bytes as they are; "/refused" is not taken. */
function upgrade(server: SeenRequest["server"], seen: SeenRequest[]) {
  return (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    seen.push({ server, method: request.method ?? "", url: request.url ?? "", headers: request.rawHeaders });
    if (request.url === "/refused") return void socket.end("HTTP/1.1 401 No\r\nContent-Length: 4\r\n\r\nnope");
    const key = `${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
    const accept = createHash("sha1").update(key).digest("base64");
    const lines = [
      "HTTP/1.1 101 Switching Protocols",
      "Upgrade: websocket",
      "Connection: Upgrade",
      `Sec-WebSocket-Accept: ${accept}`,
    ];
    socket.write(`${lines.join("\r\n")}\r\n\r\n`);
    socket.write(head);
    socket.pipe(socket);
  };
}

/** Tells these names, at the address and port, or at any port of the loopback device. */
export async function nameServer(
  names: Readonly<Record<string, Answer>>,
  { address, port }: { readonly address: string; readonly port: number } = { address: "127.0.0.1", port: 0 },
) {
  const questions: string[] = [];
  const socket = createSocket("udp4");
  socket.on("message", (query, { port, address }) => {
    let at = 12;
    const labels: string[] = [];
    for (let length = query[at]!; length > 0; length = query[at]!) {
      labels.push(query.toString("latin1", at + 1, at + 1 + length));
      at += length + 1;
    }
    const name = labels.join(".").toLowerCase();
    const type = query.readUInt16BE(at + 1);
    const wildcard = `*.${labels.slice(1).join(".").toLowerCase()}`;
    const answer = names[name] ?? names[wildcard];
    // A client asks for IPv4 and IPv6 at the same time; that is one question.
    if (type === 1) questions.push(name);
    const asked = questions.filter((one) => one === name).length;
    const addresses = typeof answer === "function" ? answer(asked) : (answer ?? []);
    const records = addresses.filter((one) => isIP(one) === (type === 1 ? 4 : 6)).map((one) => record(type, one));
    const head = Buffer.from(query.subarray(0, 12));
    head.writeUInt16BE(answer === undefined ? 0x8183 : 0x8180, 2);
    head.writeUInt16BE(records.length, 6);
    head.writeUInt32BE(0, 8);
    socket.send(Buffer.concat([head, query.subarray(12, at + 5), ...records]), port, address);
  });
  socket.bind(port, address);
  await once(socket, "listening");
  return { port: socket.address().port, questions, close: () => void socket.close() };
}

function record(type: number, address: string): Buffer {
  const bytes = isIP(address) === 4 ? Buffer.from(address.split(".").map(Number)) : ipv6Bytes(address);
  return Buffer.concat([Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 0, 0, bytes.length]), bytes]);
}

function ipv6Bytes(address: string): Buffer {
  const hex = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...parts: string[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = parts.slice(0, 4).map(Number);
    return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  });
  const [before = "", after] = hex.split("::");
  const groups = (text: string | undefined) => (text ? text.split(":") : []);
  const zeros = new Array(8 - groups(before).length - groups(after).length).fill("0");
  const bytes = Buffer.alloc(16);
  const all = after === undefined ? groups(before) : [...groups(before), ...zeros, ...groups(after)];
  for (const [index, group] of all.entries()) bytes.writeUInt16BE(Number.parseInt(group, 16), 2 * index);
  return bytes;
}

/** One certificate for all names, from an authority of its own. */
export function makeCertificates(names: readonly string[]) {
  const directory = mkdtempSync(join(tmpdir(), "agentfense-internet-"));
  const file = (name: string) => join(directory, name);
  const openssl = (...args: string[]) => execFileSync("openssl", args, { stdio: "pipe", cwd: directory });
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  try {
    openssl("req", "-x509", ...key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Test internet");
    writeFileSync(file("names"), `subjectAltName=${names.map((name) => `DNS:${name}`).join(",")}`);
    openssl("req", ...key.slice(0, -2), "-keyout", "key.pem", "-out", "request", "-subj", "/CN=server");
    const signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names"];
    openssl("x509", "-req", "-in", "request", ...signing, "-out", "cert.pem");
    const read = (name: string) => readFileSync(file(name), "utf8");
    return { ca: read("ca.pem"), key: read("key.pem"), cert: read("cert.pem") };
  } finally {
    rmSync(directory, { recursive: true });
  }
}
