import { readFile } from "node:fs/promises";
import { type FilteredSandbox, openFilteredSandboxes } from "../../../support/filtered-sandboxes.ts";
import { EVIL_ADDRESS, GOOD_ADDRESS } from "../../../support/internet.ts";

// Attacks filtered networks from inside, as whoever runs this process; prints the facts as one object.

const INSIDE = await readFile(new URL("inside.py", import.meta.url), "utf8");
const FORBIDDEN = {
  "loopback.test": ["127.0.0.1"],
  "metadata.test": ["169.254.169.254"],
  "private.test": ["10.0.0.1"],
  "shared.test": ["100.64.0.1"],
  "multicast.test": ["224.0.0.1"],
  "nobody.test": ["0.0.0.0"],
  "mapped.test": ["::ffff:127.0.0.1"],
  "loopback6.test": ["::1"],
  "local6.test": ["fd00::1"],
  "link6.test": ["fe80::1"],
  "ours.test": ["198.18.0.53"],
};
const LITERALS = [
  ...["93.184.216.34", "1572395042", "0x5db8d822", "0135.0270.0330.042", "93.12113954", "93.184.55330"],
  ...["::ffff:93.184.216.34", "64:ff9b::5db8:d822", "2606:2800:220:1:248:1893:25c8:1946", "fe80::1%lo"],
  ...["127.0.0.1", "127.1", "0.0.0.0", "0", "::1", "::", "169.254.169.254", "10.0.0.1", "198.18.0.53", "198.18.0.1"],
];
const REQUESTS = {
  "its own": "GET /own HTTP/1.1\r\nHost: good.test\r\n\r\n",
  "another host": "GET /x HTTP/1.1\r\nHost: evil.test\r\n\r\n",
  "another listed host": "GET /x HTTP/1.1\r\nHost: other.test\r\n\r\n",
  "two hosts": "GET /x HTTP/1.1\r\nHost: good.test\r\nHost: evil.test\r\n\r\n",
  "no host": "GET /x HTTP/1.1\r\nAccept: */*\r\n\r\n",
  "an absolute target": "GET http://evil.test/x HTTP/1.1\r\nHost: good.test\r\n\r\n",
  "a tunnel": "CONNECT evil.test:443 HTTP/1.1\r\nHost: good.test\r\n\r\n",
  "a trace": "TRACE /x HTTP/1.1\r\nHost: good.test\r\n\r\n",
  "two lengths": "POST /x HTTP/1.1\r\nHost: good.test\r\nContent-Length: 4\r\nContent-Length: 9\r\n\r\nabcd",
  "a length and chunks":
    "POST /x HTTP/1.1\r\nHost: good.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  "a folded header": "GET /x HTTP/1.1\r\nHost: good.test\r\nX-One: a\r\n b\r\n\r\n",
  "a bare line feed": "GET /x HTTP/1.1\nHost: good.test\n\n",
  "an endless header": `GET /x HTTP/1.1\r\nHost: good.test\r\nX: ${"y".repeat(70_000)}\r\n\r\n`,
  "a port of another": "GET /x HTTP/1.1\r\nHost: good.test:22\r\n\r\n",
};

await using place = await openFilteredSandboxes({
  "good.test": [GOOD_ADDRESS],
  "other.test": [GOOD_ADDRESS],
  "evil.test": [EVIL_ADDRESS],
  ...FORBIDDEN,
  // Harmless when it is looked at, and not when it is used.
  "rebinding.test": (question) => (question % 2 === 1 ? [GOOD_ADDRESS] : ["127.0.0.1"]),
});
const names = [...Object.keys(FORBIDDEN), "rebinding.test"];
const box = await place.open("good.test:443,80,22", "other.test:443,80", ...names.map((name) => `${name}:80`));
const attempt = async (name: string, argument: object = {}, from: FilteredSandbox = box): Promise<unknown> => {
  const { out, err } = await from.run(["python3", "-c", INSIDE, name, JSON.stringify(argument)]);
  if (out === "") throw new Error(err);
  return JSON.parse(out);
};
const deniedHosts = (): string[] => [
  ...new Set(box.events.filter(({ kind }) => kind === "connection_denied").map(({ host }) => host)),
];
const paths = (server: "good" | "evil"): string[] =>
  place.internet.seen.filter((request) => request.server === server).map(({ url }) => url);

const literals = await attempt("literals", { hosts: LITERALS });
const forbidden = await attempt("names", { hosts: Object.keys(FORBIDDEN) });
const rebound = [
  await attempt("names", { hosts: ["rebinding.test"] }),
  await attempt("names", { hosts: ["rebinding.test"] }),
];
const questionsBefore = place.internet.questions.length;
const questions = await attempt("questions");
const passedOn = place.internet.questions.slice(questionsBefore);
const hellos = await attempt("hellos");
const requests = await attempt("requests", { requests: REQUESTS });
const ways = await attempt("ways");
const denied = deniedHosts();

// Another sandbox, whose list has nothing of these.
const stranger = await place.open("other.test:443");
const address = (await box.run("getent hosts good.test | cut -d' ' -f1")).out.trim();
const there = await attempt("literals", { hosts: [address, "198.18.1.0", "198.18.1.1", "198.18.1.2"] }, stranger);
const many = (await attempt("many", { count: 700 })) as { answered: number };
const meanwhile = (await stranger.run("curl -sS --max-time 20 https://other.test/meanwhile")).out;

// A connection stays open while the list changes under it.
const HELD = `
import socket
held = socket.create_connection(("good.test", 22), 20)
held.sendall(b"x")
held.recv(1)
print("up", flush=True)
try: print("ended" if held.recv(1) == b"" else "data")
except ConnectionError: print("cut")
`;
let said = "";
let isChanged = false;
for await (const event of box.sandbox.execStream({ command: ["python3", "-c", HELD] })) {
  if (event.kind === "stdout") said += event.data.toString();
  if (!isChanged && said.startsWith("up\n")) {
    isChanged = true;
    await box.allow("other.test:443,8443");
  }
}
const after = [
  (await box.run("curl -sS --max-time 20 https://good.test/after; echo $?")).out,
  (await box.run("curl -sS --max-time 20 https://other.test/after; echo $?")).out,
];
await box.allow("good.test");
after.push((await box.run("curl -sS --max-time 20 https://good.test/again; echo $?")).out);

console.log(
  JSON.stringify({
    ...{ literals, forbidden, rebound, questions, passedOn, hellos, requests, ways, denied },
    ...{ there, many, meanwhile, said, after },
    evil: paths("evil"),
    good: paths("good"),
  }),
);
