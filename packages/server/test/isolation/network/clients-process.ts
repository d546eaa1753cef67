import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../../../../../test/support/eventually.ts";
import { openFilteredSandboxes } from "../../../../../test/support/filtered-sandboxes.ts";
import { GOOD_ADDRESS } from "../../../../../test/support/internet.ts";
import { makeRegistries } from "../../../../../test/support/registries.ts";
import { refusal } from "../../../src/isolation/network/policy.ts";
import { parseSecretRule } from "../../../src/isolation/network/secrets.ts";
import { CLIENTS, FETCHERS, OPENED_CLIENTS, SECRETS } from "./client-table.ts";

// Uses the network from inside as programs do that know nothing of a filter; prints what became of it.

const ADDRESSES = `
import socket
for family in (socket.AF_UNSPEC, socket.AF_INET, socket.AF_INET6):
    for flags in (0, socket.AI_ADDRCONFIG):
        for name in ("good.test", "evil.test"):
            try: found = sorted({info[4][0].split(".")[0] for info in socket.getaddrinfo(name, 443, family, socket.SOCK_STREAM, 0, flags)})
            except socket.gaierror: found = "unknown"
            print(name, family.name, "ADDRCONFIG" if flags else "", found)
`;

const LISTED = ["good.test", "sub.wild.test", "api.test", "modules.test", "code.test", "seen.test"];
const HOSTS = [
  ...["github.com", "registry.npmjs.org", "pypi.org", "files.pythonhosted.org", "index.crates.io", "static.crates.io"],
  ...["proxy.golang.org", "deb.debian.org"],
];

const directory = await mkdtemp(join(tmpdir(), "agentfense-registries-"));
await using _ = { [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }) };
const registries = makeRegistries(directory);
await using place = await openFilteredSandboxes(
  Object.fromEntries([...LISTED, ...HOSTS, "evil.test"].map((host) => [host, [GOOD_ADDRESS]])),
  { site: registries.site, ssh: registries.ssh?.serve },
);
await mkdir(join(place.project, "registries"));
if (registries.ssh !== undefined) await cp(registries.ssh.key, join(place.project, "registries/client-key"));

/** Of toolchains that may be anywhere. */
function directoryOf(program: string, ...args: string[]): string | undefined {
  const { status, stdout } = spawnSync(program, args, { encoding: "utf8" });
  return status === 0 ? stdout.trim() : undefined;
}
const tools = {
  "/opt/python": join(import.meta.dirname, "../../../../../.cache/python-sdk"),
  "/opt/rust": directoryOf("rustc", "--print", "sysroot"),
  "/opt/go": directoryOf("go", "env", "GOROOT"),
};
const shown = Object.fromEntries(
  Object.entries(tools).filter((tool): tool is [string, string] => tool[1] !== undefined && existsSync(tool[1])),
);
const box = await place.open(
  [
    "good.test:443,80,22",
    "*.wild.test",
    ...HOSTS,
    "github.com:22",
    { host: "seen.test", methods: ["GET"], paths: ["/v1/*"] },
  ],
  { tools: shown },
);
const secrets = Object.entries(SECRETS).map(([name, { host, place: where, value }]) => ({
  ...parseSecretRule(name, [host], where),
  value,
}));
const opened = await place.open([], { tools: shown, secrets });

/** What a line prints last, or how it fails, in a directory of its own; a reason where it cannot be tried. */
async function tried(sandbox: typeof box, needs: readonly string[], line: string, env: Record<string, string> = {}) {
  const path = "PATH=$PATH:/opt/rust/bin:/opt/go/bin:/usr/local/go/bin";
  const missing = (
    await sandbox.run(
      `${path}; for one in ${needs.join(" ")}; do command -v $one >/dev/null || [ -e $one ] || echo $one; done`,
    )
  ).out.trim();
  if (missing !== "") return { skipped: `${missing} is not there` };
  const variables = Object.entries(env).map(([name, value]) => `export ${name}="${value}"\n`);
  const { out, err, code } = await sandbox.run(
    `${path}\n${variables.join("")}cd "$(mktemp -d)"; export HOME=$PWD\n${line}`,
  );
  return { code, out: out.trim(), err };
}

const clients: Record<string, unknown> = {};
for (const { name, needs, line, refused, unless } of CLIENTS) {
  const env = { SSH_USER: registries.ssh?.user ?? "", SSH_REPOSITORY: registries.repository };
  const fit = unless === undefined ? undefined : await tried(box, needs, unless.line);
  if (fit?.skipped === undefined && fit?.code) {
    clients[name] = { skipped: unless!.reason };
    continue;
  }
  const evil = `${name.toLowerCase().replaceAll(/\W/g, "")}.evil.test`;
  const allowed = await tried(box, needs, line, env);
  if (allowed.skipped !== undefined) {
    clients[name] = allowed;
    continue;
  }
  const not = await tried(box, needs, refused.replaceAll("EVIL", evil), env);
  const told = () =>
    box.events.some(
      ({ kind, host, sentence }) => kind === "connection_denied" && host === evil && sentence === refusal(evil),
    );
  await eventually(told).catch(() => {}); // what comes of it is in the report
  clients[name] = { allowed, refused: { fails: not.code !== 0, told: told() } };
}
const openedClients: Record<string, unknown> = {};
for (const { name, needs, line } of OPENED_CLIENTS) openedClients[name] = await tried(opened, needs, line);
const fetchers: Record<string, unknown> = {};
for (const { name, needs, line } of FETCHERS) {
  const URLS = `https://good.test/${name} http://seen.test/v2/x https://evil.test/${name}`;
  const unopened = await tried(box, [needs], line, { URLS });
  if (unopened.skipped !== undefined) {
    fetchers[name] = unopened;
    continue;
  }
  const inside = await tried(opened, [needs], line, { URLS: `https://api.test/${name}` });
  const key = headerOf(`/${name}`, "api.test", "x-api-key");
  fetchers[name] = { unopened, opened: inside, key };
}

/** What a host was sent in a header, the last time. */
function headerOf(url: string, host: string, header: string): string | undefined {
  const of = (headers: readonly string[], name: string) =>
    headers[headers.findIndex((one, at) => at % 2 === 0 && one.toLowerCase() === name) + 1];
  const request = place.internet.seen.findLast((one) => one.url.startsWith(url) && of(one.headers, "host") === host);
  return request === undefined ? undefined : of(request.headers, header);
}

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
const eventsOf = (kind: string) => box.events.filter((event) => event.kind === kind);
console.log(
  JSON.stringify({
    ...{ clients, opened: openedClients, fetchers },
    sent: {
      go: headerOf("/greeting.test", SECRETS.GO_TOKEN.host, "authorization"),
      git: headerOf("/greeting.git", SECRETS.GIT_TOKEN.host, "authorization"),
    },
    usual: {
      ...report,
      git: asked.filter((request) => request.includes("git-upload-pack") && request.includes("/repository")),
      // The first to a name and port, and all names that were refused, in whatever order clients come to them.
      allowed: eventsOf("connection_allowed").map(({ host, port }) => `${host}:${port}`),
      denied: eventsOf("connection_denied").map(({ host, sentence }) => `${host}: ${sentence}`),
      questions: [...new Set(place.internet.questions)],
    },
  }),
);
