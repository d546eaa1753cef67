import { createSocket } from "node:dgram";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { childrenOf } from "../../../src/isolation/bwrap/host-processes.ts";
import { openBoxFixture } from "./fixture.ts";

// Asks for a name in a box with a private network, before and after the host asks somebody else; prints who answered, and what the
// box cannot reach then. /etc/resolv.conf and the devices are the test's own.

const [first, second] = ["127.0.0.2", "127.0.0.3"] as const;

/** Answers every question with its own address. */
async function nameServer(address: string): Promise<void> {
  const socket = createSocket("udp4").unref();
  const found = Buffer.from([...Buffer.from("c00c00010001000000000004", "hex"), ...address.split(".").map(Number)]);
  socket.on("message", (question, asker) => {
    const header = [question.subarray(0, 2), Buffer.from("81800001000100000000", "hex")];
    socket.send(Buffer.concat([...header, question.subarray(12), found]), asker.port, asker.address);
  });
  socket.bind(53, address);
  await once(socket, "listening");
}

const ASK = "import socket; print(socket.gethostbyname('name.example'))";
const REACH = `
import socket
try: socket.create_connection(("10.0.0.1", 80), 5)
except ConnectionRefusedError: print("refused")
`;

await nameServer(first);
await nameServer(second);
writeFileSync("/etc/resolv.conf", `nameserver ${first}\n`);
await using place = await openBoxFixture({ spec: { network: "private" } });
const python = async (program: string): Promise<string> => {
  const { stdout, stderr } = await place.sh("", { argv: ["/usr/bin/python3", "-c", program] });
  return (stdout + stderr).trim();
};
const helpers = (): number => childrenOf(process.pid).length;

const before = await python(ASK);
const helpersBefore = helpers();
writeFileSync("/etc/resolv.conf", `search example\nnameserver ${second}\n`);
const after = await Promise.all([python(ASK), python(ASK), python(ASK)]);
writeFileSync("/etc/resolv.conf", "");
const withoutAny = await python(ASK);
const forbidden = await python(REACH);
console.log(JSON.stringify({ before, after, withoutAny, forbidden, moreHelpers: helpers() - helpersBefore }));
