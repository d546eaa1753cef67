// A thread with a connection that is cut while TLS over it is ending. It tells when that is done; it has to be able to end then.

import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { connect, TLSSocket } from "node:tls";
import { parentPort } from "node:worker_threads";
import { SandboxAuthority } from "../../../src/isolation/network/certificates.ts";
import { carriesTls, cut } from "../../../src/isolation/network/connection.ts";

const server = createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
await once(server, "listening");
const { port } = server.address() as AddressInfo;
// Whom it talks to does not matter here.
const client = connect({ port, host: "127.0.0.1", servername: "good.test", rejectUnauthorized: false });
client.on("error", () => {});
const [accepted] = (await once(server, "connection")) as [Socket];
const secureContext = new SandboxAuthority(["good.test"]).contextFor("good.test");
const opened = new TLSSocket(carriesTls(accepted.on("error", () => {})), { isServer: true, secureContext });
client.write("hello");
const heard = once(client, "data");
await once(
  opened.on("error", () => {}),
  "data",
);
opened.write("hello");
await heard;
opened.end();
cut(accepted);
setImmediate(() => parentPort?.postMessage("cut"));
