// A client in a box: asks for "/" over some connections that it keeps, until it has had so many answers, and prints the seconds.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

const { host, secure, connections, requests } = JSON.parse(process.argv[2] ?? "") as {
  readonly host: string;
  readonly secure: boolean;
  readonly connections: number;
  readonly requests: number;
};
const ca = readFileSync(process.env.CURL_CA_BUNDLE ?? "");
const request = `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
const sockets = await Promise.all(Array.from({ length: connections }, open));
let left = requests;
const startedAtMs = performance.now();
await Promise.all(sockets.map(ask));
process.stdout.write(String((performance.now() - startedAtMs) / 1000));
process.exit();

async function open(): Promise<Socket> {
  const socket = secure
    ? connectTls({ host, port: 443, servername: host, ca, ALPNProtocols: ["http/1.1"] })
    : connect({ host, port: 80, noDelay: true });
  await once(socket, secure ? "secureConnect" : "connect");
  return socket;
}

/** An answer ends with its body, which is in it once. */
async function ask(socket: Socket): Promise<void> {
  while (left > 0) {
    left -= 1;
    socket.write(request);
    let answer = "";
    while (!answer.endsWith("\r\n\r\npong")) answer += ((await once(socket, "data"))[0] as Buffer).toString("latin1");
  }
}
