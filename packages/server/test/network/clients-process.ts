import { openFilteredSandboxes } from "../../../../test/support/filtered-sandboxes.ts";
import { GOOD_ADDRESS } from "../../../../test/support/internet.ts";

// Uses the network from inside as programs do that know nothing of a filter; prints what became of it.

const URLLIB = `
import urllib.request, urllib.error
for url in ("https://good.test/urllib", "http://good.test/urllib", "https://evil.test/urllib"):
    try: print(url, urllib.request.urlopen(url, timeout=20).read().decode())
    except urllib.error.URLError as error: print(url, error.reason)
`;
const FETCH = `
for (const url of ["https://good.test/fetch", "https://sub.wild.test/fetch", "https://evil.test/fetch"]) {
  try { console.log(url, await (await fetch(url)).text()); } catch (error) { console.log(url, error.cause?.code); }
}
`;
const ADDRESSES = `
import socket
for family in (socket.AF_UNSPEC, socket.AF_INET, socket.AF_INET6):
    for flags in (0, socket.AI_ADDRCONFIG):
        for name in ("good.test", "evil.test"):
            try: found = sorted({info[4][0].split(".")[0] for info in socket.getaddrinfo(name, 443, family, socket.SOCK_STREAM, 0, flags)})
            except socket.gaierror: found = "unknown"
            print(name, family.name, "ADDRCONFIG" if flags else "", found)
`;

await using place = await openFilteredSandboxes({
  "good.test": [GOOD_ADDRESS],
  "sub.wild.test": [GOOD_ADDRESS],
  "evil.test": [GOOD_ADDRESS],
});
const box = await place.open("good.test:443,80,22", "*.wild.test");
const lines = async (command: Parameters<typeof box.run>[0], input?: string): Promise<string[]> =>
  (await box.run(command, input)).out.trim().split("\n");

const curl = async (...args: string[]): Promise<string> => {
  const { out, code } = await box.run(["curl", "-sS", "--max-time", "20", ...args]);
  return `${code} ${out}`;
};
const report = {
  curl: [
    await curl("https://good.test/a"),
    await curl("-4", "https://good.test/b"),
    await curl("http://good.test/c"),
    await curl("--http1.1", "https://sub.wild.test/d"),
    await curl("https://wild.test/e"),
    await curl("https://evil.test/f"),
    await curl("http://evil.test/g"),
    await curl("https://good.test:444/h"),
  ],
  urllib: await lines(["python3", "-c", URLLIB]),
  fetch: await lines(["/workspace/node", "--input-type=module", "-e", FETCH]),
  getent: await lines(
    "for database in hosts ahosts ahostsv4 ahostsv6; do getent $database good.test | grep -c 198.18; done; getent ahosts evil.test; echo $?",
  ),
  addresses: await lines(["python3", "-c", ADDRESSES]),
  tcp: await lines("exec 3<>/dev/tcp/good.test/22; echo hello >&3; head -1 <&3"),
  large: await lines(
    "curl -sS 'https://good.test/large?bytes=20000000' | wc -c; head -c 5000000 /dev/zero | curl -sS -T - https://good.test/body",
  ),
};
await box.run("cd /tmp && GIT_TERMINAL_PROMPT=0 git ls-remote https://good.test/repository.git");
const asked = place.internet.seen.map(({ method, url }) => `${method} ${url}`);
console.log(
  JSON.stringify({
    ...report,
    git: asked.filter((request) => request.includes("git-upload-pack")),
    // The first to a name and port, and all names that were refused, in whatever order clients come to them.
    allowed: box.events
      .filter(({ kind }) => kind === "connection_allowed")
      .map(({ host, port }) => `${host}:${port}`)
      .sort(),
    denied: [
      ...new Set(
        box.events
          .filter(({ kind }) => kind === "connection_denied")
          .map(({ host, sentence }) => `${host}: ${sentence}`),
      ),
    ].sort(),
    questions: [...new Set(place.internet.questions)].sort(),
  }),
);
