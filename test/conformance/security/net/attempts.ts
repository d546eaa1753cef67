import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { type FilteredSandbox, openFilteredSandboxes } from "../../../support/filtered-sandboxes.ts";
import { EVIL_ADDRESS, GOOD_ADDRESS } from "../../../support/internet.ts";
import { WITH_ALLOWED } from "./ways.ts";

// Attacks filtered networks from inside, as whoever runs this process; prints the facts as one object.

const INSIDE = await readFile(new URL("inside.py", import.meta.url), "utf8");
const ABSTRACT = `agentfense-outside-${process.pid}`;
const ways = WITH_ALLOWED.map((way, index) => {
  const [own, evil] = [`own${index}.test`, `evil${index}.test`];
  const words = { OWN: own, EVIL: evil, MINE: own.toUpperCase(), LOUD: evil.toUpperCase(), ABSTRACT };
  const put = (value: unknown): unknown => {
    if (typeof value === "string")
      return value.replaceAll(/OWN|EVIL|MINE|LOUD|ABSTRACT/g, (word) => words[word as "OWN"]);
    if (Array.isArray(value)) return value.map(put);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, put(one)]));
  };
  return { ...way, own, evil, attempt: put(way.how) as readonly unknown[] };
});

await using place = await openFilteredSandboxes({
  "listed.test": [GOOD_ADDRESS],
  ...Object.fromEntries(ways.map(({ own, resolves }) => [own, resolves ?? [GOOD_ADDRESS]])),
  ...Object.fromEntries(ways.map(({ evil }) => [evil, [EVIL_ADDRESS]])),
  // Harmless when it is looked at, and not when it is used.
  "rebinding.test": (question) => (question % 2 === 1 ? [GOOD_ADDRESS] : ["127.0.0.1"]),
});
// Sockets of the host, where a box could look for some.
for (const path of [`\0${ABSTRACT}`, join(place.project, "outside.sock")]) {
  await once(
    createServer((socket) => socket.end("found"))
      .listen(path)
      .unref(),
    "listening",
  );
}
const list = ["listed.test:443,80,22", "rebinding.test:80", ...ways.map(({ own }) => `${own}:443,80,22`)];
const box = await place.open(list);
const attempt = async (attempts: readonly (readonly unknown[])[], from: FilteredSandbox = box): Promise<string[]> => {
  const { out, err } = await from.run(["python3", "-c", INSIDE], JSON.stringify(attempts));
  if (out === "") throw new Error(err);
  return JSON.parse(out);
};

const rebinding = [
  "tcp",
  "rebinding.test",
  80,
  "GET /own HTTP/1.1\r\nHost: rebinding.test\r\nConnection: close\r\n\r\n",
];
const rebound = await attempt([rebinding, rebinding]);
// A minute's events about different things are bounded, so that one box would be told of too many.
const second = await place.open(list);
const half = ways.findIndex(({ id }) => id === "NET-05");
const outcomes = [
  ...(await attempt(ways.slice(0, half).map((way) => way.attempt))),
  ...(await attempt(
    ways.slice(half).map((way) => way.attempt),
    second,
  )),
];
const events = [...box.events, ...second.events];
const denied = [...new Set(events.filter(({ kind }) => kind === "connection_denied").map(({ host }) => host))];

// Another sandbox, whose list has nothing of these.
const stranger = await place.open(["other.test:443", "listed.test:443"]);
const address = (await attempt([["address", "own0.test"]]))[0]!;
const places = [address, "198.18.1.0", "198.18.1.1", "198.18.1.2"].flatMap((host) =>
  [80, 443, 22].map((port) => [host, port] as const),
);
const reached = await attempt(
  places.map((where) => ["tcp", ...where, "GET /x HTTP/1.1\r\nHost: own0.test\r\n\r\n"]),
  stranger,
);
const there = Object.fromEntries(places.map((where, index) => [where.join(" "), reached[index]]));
const [named] = await attempt([["question", "own0.test"]], stranger);
const [many] = (await attempt([["many", "listed.test", 700]])) as unknown[];
const meanwhile = (await stranger.run("curl -sS --max-time 20 https://listed.test/meanwhile")).out;

// A connection stays open while the list changes under it.
const HELD = `
import socket
held = socket.create_connection(("listed.test", 22), 20)
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
    await box.allow("own0.test:443,8443");
  }
}
const after = [
  (await box.run("curl -sS --max-time 20 https://listed.test/after; echo $?")).out,
  (await box.run("curl -sS --max-time 20 https://own0.test/after; echo $?")).out,
];
await box.allow("listed.test");
after.push((await box.run("curl -sS --max-time 20 https://listed.test/again; echo $?")).out);

console.log(
  JSON.stringify({
    ways: ways.map(({ own, evil }, index) => ({
      outcome: outcomes[index],
      names: denied.flatMap((host) => {
        if (host === own) return "OWN";
        return host === evil || host.endsWith(`.${evil}`) ? "EVIL" : [];
      }),
    })),
    ...{ rebound, denied, there, named, many, meanwhile, said, after },
    seen: place.internet.seen.map(({ server, url }) => `${server} ${url}`),
    questions: place.internet.questions,
  }),
);
