import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { searchProcesses } from "../../../../../test/support/box-memory.ts";
import { reasonAgainstDocker } from "../../../../../test/support/docker-engine.ts";
import { dockerOfRun } from "../../../../../test/support/docker-of-run.ts";
import { eventually } from "../../../../../test/support/eventually.ts";
import { reasonAgainst } from "../../../../../test/support/identity.ts";
import { GOOD_ADDRESS, type Internet, openInternet } from "../../../../../test/support/internet.ts";
import { type Isolation, type IsolationOptions, openIsolation } from "../../../src/isolation/isolation.ts";
import { networkRules } from "../../../src/isolation/network/list.ts";
import { parseSecretRule, withSecretHosts } from "../../../src/isolation/network/secrets.ts";
import type { BoxedWorkspace, SandboxEvent } from "../../../src/isolation/sandbox/api.ts";

const VALUE = "sk-ant-api03-Qw9Er8Ty7Ui6Op5As4Df3Gh2";

const RUNTIMES = {
  bwrap: { reason: reasonAgainst("root"), isolation: async () => ({}) },
  docker: {
    reason: reasonAgainstDocker(),
    isolation: async () => {
      const { socketPath, image } = await dockerOfRun();
      return { runtimes: ["docker"], docker: { socketPath, image } } as const;
    },
  },
} satisfies Record<string, { reason: string | undefined; isolation(): Promise<IsolationOptions> }>;

describe.each(["bwrap", "docker"] as const)("in a box of %s", (runtime) => {
  const { reason, isolation: options } = RUNTIMES[runtime];
  if (reason !== undefined) console.log(`secrets in a box of ${runtime} are not tried: ${reason}`);

  let internet: Internet;
  let isolation: Isolation;
  let sandbox: BoxedWorkspace;
  let directory: string;
  const events: SandboxEvent[] = [];

  beforeAll(async () => {
    if (reason !== undefined) return;
    directory = await mkdtemp(join(tmpdir(), "agentfense-secrets-"));
    internet = await openInternet({
      "api.test": [GOOD_ADDRESS],
      "other.test": [GOOD_ADDRESS],
      "plain.test": [GOOD_ADDRESS],
    });
    const { network: _, ...seam } = internet.seam;
    isolation = await openIsolation({ ...(await options()), internet: { ...seam, certificates: [internet.ca] } });
    const secret = { ...parseSecretRule("API_KEY", ["api.test"], "header x-api-key"), value: VALUE };
    const allowed = networkRules({
      allow: ["plain.test:80", { host: "other.test", methods: ["GET"], paths: ["/v1/*"] }],
    });
    sandbox = await isolation.create({
      workspaces: [
        { lowers: [directory], delta: `${directory}-delta`, rules: [{ pattern: "**", permission: "write" }] },
      ],
      runtime,
      network: "filtered",
      networkRules: withSecretHosts(allowed, [secret]),
      secrets: [secret],
      onEvent: (event) => events.push(event),
    });
    await sandbox.start();
  });

  afterAll(async () => {
    if (reason !== undefined) return;
    await sandbox?.destroy();
    await isolation?.close();
    await internet?.[Symbol.asyncDispose]();
    for (const path of [directory, `${directory}-delta`]) await rm(path, { recursive: true, force: true });
  });

  async function sh(command: string): Promise<{ stdout: string; stderr: string; exitCode: number }> {
    const result = await sandbox.exec({ command });
    return { stdout: String(result.stdout), stderr: String(result.stderr), exitCode: result.exitCode };
  }

  /** The values of a header in all requests that reached the host, in their order. */
  function received(name: string): (string | undefined)[] {
    return internet.seen.splice(0).map(({ headers }) => {
      const at = headers.findIndex((one, index) => index % 2 === 0 && one.toLowerCase() === name);
      return at === -1 ? undefined : headers[at + 1];
    });
  }

  const CLIENTS: Record<string, string> = {
    curl: 'curl -sS -H "x-api-key: $API_KEY" https://api.test/',
    node: `node -e "fetch('https://api.test/', { headers: { 'x-api-key': process.env.API_KEY } }).then((r) => r.text()).then(console.log)"`,
    python3: `/usr/bin/python3 -c "import os, urllib.request as r; print(r.urlopen(r.Request('https://api.test/', headers={'x-api-key': os.environ['API_KEY']})).read())"`,
  };

  test.skipIf(reason !== undefined)(
    "the value reaches its host from programs that know of nothing, and the box has the placeholder",
    async () => {
      const { stdout } = await sh("echo $API_KEY");
      expect(stdout).toMatch(/^sk-ant-api03-[A-Za-z0-9]{24}\n$/);
      expect(stdout).not.toContain(VALUE);
      for (const [name, line] of Object.entries(CLIENTS)) {
        if ((await sh(`command -v ${name}`)).exitCode !== 0) continue;
        expect(await sh(line), name).toMatchObject({ exitCode: 0 });
        expect(received("x-api-key"), name).toEqual([VALUE]);
      }
    },
  );

  test.skipIf(reason !== undefined)(
    "to another opened host, and without TLS, goes the placeholder, and it is told",
    async () => {
      const placeholder = (await sh("printf %s $API_KEY")).stdout;
      await sh('curl -sS -H "x-api-key: $API_KEY" https://other.test/v1/a');
      expect(received("x-api-key")).toEqual([placeholder]);
      await eventually(() =>
        expect(events.filter(({ kind }) => kind === "secret_misplaced")).toEqual([
          expect.objectContaining({
            host: "other.test",
            port: 443,
            sentence: expect.stringContaining("the placeholder of API_KEY"),
          }),
        ]),
      );
      await sh('curl -sS -H "x-api-key: $API_KEY" http://plain.test/');
      expect(received("x-api-key")).toEqual([placeholder]);
    },
  );

  test.skipIf(reason !== undefined)("methods and paths of a line are held to", async () => {
    const status = (options: string) =>
      sh(`curl -s -o /dev/null -w '%{http_code}' ${options}`).then(({ stdout }) => stdout);
    expect(await status("https://other.test/v1/a")).toBe("200");
    expect(await status("-X POST https://other.test/v1/a")).toBe("403");
    expect(await status("https://other.test/v2/a")).toBe("403");
  });

  test.skipIf(reason !== undefined)(
    "a list with methods for a host that is not opened yet is refused while the sandbox runs",
    async () => {
      const rules = networkRules({ allow: [{ host: "new.test", methods: ["GET"] }] });
      await expect(sandbox.updateNetwork(rules)).rejects.toThrow(
        "connections to new.test cannot be opened while the sandbox runs",
      );
    },
  );

  test.skipIf(reason !== undefined)(
    "the value is in no environment, command line or memory of the box's processes",
    async () => {
      const placeholder = (await sh("printf %s $API_KEY")).stdout;
      const started = sandbox.exec({
        command: 'sleep 1000 & curl -sS -H "x-api-key: $API_KEY" https://api.test/never',
      });
      started.catch(() => {});
      await eventually(() => expect(received("x-api-key")).toEqual([VALUE]));
      // The same search finds the placeholder: it would have found the value.
      const found = searchProcesses({ placeholder, value: VALUE });
      expect(found.processes).toBeGreaterThanOrEqual(3);
      expect(found).toMatchObject({ placeholder: found.processes, value: 0 });
    },
  );
});
