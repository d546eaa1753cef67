// The internet of the benchmark, in a network namespace of its own (test/agents/machine.sh): a name server, and a web server with and
// without TLS, behind all names.

import { existsSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { join } from "node:path";
import { eventually } from "../../test/support/eventually.ts";
import { makeCertificates, nameServer } from "../../test/support/internet.ts";

const HOSTS = ["passed.test", "opened.test", "secret.test"];
const [directory = ""] = process.argv.slice(2);
const inside = (name: string): string => join(directory, name);

await eventually(() => existsSync(inside("wired")));
const { ca, ...certificate } = makeCertificates(HOSTS);
writeFileSync(inside("ca.pem"), ca);
await listening(createServer(pages()), 80);
await listening(createSecureServer(certificate, pages()), 443);
await nameServer(Object.fromEntries(HOSTS.map((host) => [host, ["93.184.216.34"]])), {
  address: "93.184.216.1",
  port: 53,
});
writeFileSync(inside("online"), "");

/** "/" is four bytes; "/N" is N bytes. */
function pages(): RequestListener {
  const block = Buffer.alloc(256 * 1024, "x");
  return (request, response) => {
    const bytes = Number(request.url!.slice(1));
    if (bytes === 0) return void response.end("pong");
    response.writeHead(200, { "Content-Length": bytes });
    send(response, block, bytes);
  };
}

function send(response: ServerResponse, block: Buffer, bytes: number): void {
  for (let left = bytes; left > 0; left -= block.length) {
    if (response.write(block.subarray(0, left))) continue;
    response.once("drain", () => send(response, block, left - block.length));
    return;
  }
  response.end();
}

function listening(server: ReturnType<typeof createServer>, port: number): Promise<void> {
  return new Promise((resolve) => server.listen(port, "0.0.0.0", resolve));
}
