import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { ProjectPolicyError, readProjectPolicy } from "../../src/project/index.ts";

/** A directory that lasts as long as the test, with a policy file if one is given. */
async function project(policy?: string | Uint8Array): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "agentfense-project-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  if (policy !== undefined) await writeFile(join(directory, ".agentfense.yaml"), policy);
  return directory;
}

describe("a policy file", () => {
  test("is read in full", async () => {
    const directory = await project(`
version: 1
preset: development
permissions:
  - { pattern: "/docs/**", permission: write }
  - pattern: "/vendor/"
    permission: view
    type: directory
    priority: 5
runtime: docker
network: none
resources: { memory: 512m, cpus: 0.5, pids: 256, disk: 1073741824 }
env:
  CI: "1"
ignore: ["*.log", /tmp/]
`);
    expect(await readProjectPolicy(directory)).toEqual({
      path: join(directory, ".agentfense.yaml"),
      preset: "development",
      permissions: [
        { pattern: "/docs/**", permission: "write" },
        { pattern: "/vendor/", permission: "view", type: "directory", priority: 5 },
      ],
      runtime: "docker",
      network: "none",
      resources: { memoryBytes: 2 ** 29, cpuQuota: 50_000, pidsLimit: 256, diskBytes: 2 ** 30 },
      env: { CI: "1" },
      ignore: ["*.log", "/tmp/"],
    });
  });

  test("may say nothing but its version", async () => {
    const directory = await project("version: 1\n");
    expect(await readProjectPolicy(directory)).toEqual({ path: join(directory, ".agentfense.yaml") });
  });

  test("that is absent is no policy, and neither is one in an absent directory", async () => {
    const directory = await project();
    expect(await readProjectPolicy(directory)).toBeUndefined();
    expect(await readProjectPolicy(join(directory, "absent"))).toBeUndefined();
  });

  test("may use aliases", async () => {
    const directory = await project(
      'version: 1\npermissions:\n  - &docs { pattern: "/docs/**", permission: read }\n  - *docs\n',
    );
    const rule = { pattern: "/docs/**", permission: "read" };
    expect((await readProjectPolicy(directory))?.permissions).toEqual([rule, rule]);
  });
});

/** What is wrong, the text, the line and column, and what must be said. */
const WRONG: readonly (readonly [what: string, text: string, place: string, message: string])[] = [
  ["nothing in it", "", "1:1", "the file: expected keys (version, preset,"],
  ["no version", "preset: agent-safe\n", "1:1", "version is missing; the file begins with: version: 1"],
  ["another version", "version: 2\n", "1:10", "version: expected 1, not 2"],
  ["a misspelt key", "version: 1\npermisions: []\n", "2:1", 'unknown key "permisions"; did you mean permissions?'],
  ["an unknown key", "version: 1\nfrobnicate: 1\n", "2:1", 'unknown key "frobnicate"; allowed: version, preset,'],
  ["a key of objects", "version: 1\n__proto__: 1\n", "2:1", 'unknown key "__proto__"'],
  ["a merge key", "version: 1\n<<: { preset: read-only }\n", "2:1", 'unknown key "<<"'],
  ["a key twice", "version: 1\nenv: {}\nenv: {}\n", "3:1", "the key env is there twice"],
  ["a key without a value", "version: 1\npermissions:\n", "2:13", "rules must be a list"],
  ["an unknown preset", "version: 1\npreset: agent-sfae\n", "2:9", 'no preset "agent-sfae"; known: agent-safe,'],
  ["a preset that is a number", "version: 1\npreset: 3\n", "2:9", "preset: expected one of agent-safe,"],
  [
    "a bad level",
    "version: 1\npermissions:\n  - { pattern: /a, permission: read }\n  - { pattern: /b, permission: raed }\n",
    "4:5",
    'rule 1 ("/b"): permission must be one of none, view, read, write',
  ],
  [
    "a misspelt field",
    "version: 1\npermissions:\n  - { pattern: /a, permision: read }\n",
    "3:5",
    'unknown field "permision"; a rule has pattern, permission, type and priority',
  ],
  ["a bad pattern", 'version: 1\npermissions:\n  - { pattern: "/a/[b", permission: none }\n', "3:5", "rule 0"],
  ["an unquoted pattern", "version: 1\npermissions:\n  - pattern: **/*\n", "3:14", "needs quotes"],
  ["an unknown runtime", "version: 1\nruntime: podman\n", "2:10", "runtime: expected one of bwrap, docker"],
  [
    "an unknown network",
    "version: 1\nnetwork: all\n",
    "2:10",
    "network: expected one of none, private, host, or a list",
  ],
  [
    "hosts that are none",
    "version: 1\nnetwork:\n  allow: [a.org, 5]\n",
    "3:18",
    "network.allow: expected a host such as",
  ],
  [
    "addresses, which the file cannot allow itself",
    "version: 1\nnetwork:\n  allow: [a.org@10.0.0.0/8]\n",
    "3:11",
    "has addresses, which only --allow and programs can give",
  ],
  ["a misspelt list", "version: 1\nnetwork: { alow: [a.org] }\n", "2:12", 'unknown key "alow"; did you mean allow?'],
  ["an unknown limit", "version: 1\nresources:\n  memroy: 1g\n", "3:3", 'unknown key "memroy"; did you mean memory?'],
  [
    "a limit without a unit we know",
    "version: 1\nresources: { memory: 1x }\n",
    "2:22",
    "resources.memory: expected a size",
  ],
  ["a limit of nothing", "version: 1\nresources: { disk: 0 }\n", "2:20", "resources.disk: expected a size"],
  ["more processes than the default", "version: 1\nresources: { pids: 5000 }\n", "2:20", "a number from 1 to 1024"],
  [
    "a variable that is a number",
    "version: 1\nenv:\n  PORT: 80\n",
    "3:9",
    "env.PORT: expected a text, not 80; put it in quotes",
  ],
  ["a bad name of a variable", 'version: 1\nenv: { "A=B": c }\n', "2:8", 'env: "A=B" is no name of a variable'],
  ["a pattern to ignore that is none", "version: 1\nignore: [a, 1]\n", "2:13", "ignore: expected a pattern"],
  [
    "an agent without a program",
    "version: 1\nagents: { helper: { allow: [] } }\n",
    "2:19",
    "agents.helper.program is missing",
  ],
  [
    "an agent whose key is misspelt",
    "version: 1\nagents: { helper: { programm: a } }\n",
    "2:21",
    'unknown key "programm"; did you mean program?',
  ],
  [
    "an agent's key without hosts",
    "version: 1\nagents: { a: { program: a, secrets: { K: { in: bearer } } } }\n",
    "2:42",
    "agents.a.secrets.K.hosts is missing",
  ],
  [
    "an agent's key that comes from no name",
    "version: 1\nagents: { a: { program: a, secrets: { K: { hosts: [a.example], in: bearer, from: 1 } } } }\n",
    "2:82",
    "agents.a.secrets.K.from: expected a text, not 1",
  ],
  [
    "an agent's name that is a path",
    "version: 1\nagents: { a/b: { program: a } }\n",
    "2:11",
    'agents: "a/b" cannot be a name here',
  ],
  ["no YAML", "version: [1\n", "2:1", "Flow sequence"],
  ["two documents", "version: 1\n---\nversion: 1\n", "2:1", "multiple documents"],
  ["a tag of its own", "version: !!js/function x\n", "1:10", "Unresolved tag"],
  ["an alias in itself", "version: 1\nignore: &a [*a]\n", "2:13", "*a stands for nothing"],
  ["depth without end", "[".repeat(5000), "1:", "too deep"],
];

describe("a mistake is refused with its place and what is allowed", () => {
  test.each(WRONG)("%s", async (_what, text, place, message) => {
    const directory = await project(text);
    const error = await readProjectPolicy(directory).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ProjectPolicyError);
    expect(String((error as Error).message)).toContain(`${join(directory, ".agentfense.yaml")}:${place}`);
    expect(String((error as Error).message)).toContain(message);
  });

  test("a rule behind an alias is found at the alias", async () => {
    const directory = await project("version: 1\nignore: &x [a]\npermissions: *x\n");
    await expect(readProjectPolicy(directory)).rejects.toMatchObject({ line: 3, column: 14 });
  });

  test("aliases that multiply", async () => {
    const level = (name: string, of: string) => `  ${name}: &${name} [${Array(10).fill(`*${of}`).join(", ")}]\n`;
    const bomb = `version: 1\nenv:\n  a: &a [x, x]\n${level("b", "a")}${level("c", "b")}${level("d", "c")}${level("e", "d")}`;
    await expect(readProjectPolicy(await project(bomb))).rejects.toThrow("aliases that multiply");
  });

  test("a hundred thousand keys are refused without taking for ever", async () => {
    const many = Array.from({ length: 80_000 }, (_, index) => `k${index}: 1`).join("\n");
    await expect(readProjectPolicy(await project(many))).rejects.toThrow('unknown key "k0"');
  });
});

describe("what is not a plain file is refused", () => {
  test("a symbolic link, wherever it leads", async () => {
    const directory = await project();
    await writeFile(join(directory, "real.yaml"), "version: 1\n");
    await symlink("real.yaml", join(directory, ".agentfense.yaml"));
    await expect(readProjectPolicy(directory)).rejects.toThrow("is a symbolic link, and those are not followed");
  });

  test("a dangling link is no absent file", async () => {
    const directory = await project();
    await symlink("absent", join(directory, ".agentfense.yaml"));
    await expect(readProjectPolicy(directory)).rejects.toThrow(ProjectPolicyError);
  });

  test("a directory", async () => {
    const directory = await project();
    await mkdir(join(directory, ".agentfense.yaml"));
    await expect(readProjectPolicy(directory)).rejects.toThrow(".agentfense.yaml: is not a file");
  });

  test("a pipe, without waiting for a writer", async () => {
    const directory = await project();
    execFileSync("mkfifo", [join(directory, ".agentfense.yaml")]);
    await expect(readProjectPolicy(directory)).rejects.toThrow("is not a file");
  });

  test("more than 1 MiB", async () => {
    const comment = `version: 1\n#${" ".repeat(1_048_576)}\n`;
    await expect(readProjectPolicy(await project(comment))).rejects.toThrow("is larger than 1 MiB");
  });

  test("bytes that are not UTF-8", async () => {
    const bytes = new Uint8Array([...new TextEncoder().encode("version: 1\n# "), 0xff]);
    await expect(readProjectPolicy(await project(bytes))).rejects.toThrow("is not UTF-8 text");
  });

  test("a file of nearly the right name", async () => {
    const directory = await project();
    await writeFile(join(directory, ".agentfense.yml"), "version: 1\n");
    await expect(readProjectPolicy(directory)).rejects.toThrow("is not read; the file is called .agentfense.yaml");
  });
});

test("a program loads the parser when there is something to parse, and not before", () => {
  const program = `
    import { registerHooks } from "node:module";
    let loads = 0;
    const isParser = (url) => url.includes("/node_modules/yaml/");
    registerHooks({ load: (url, context, next) => ((loads += isParser(url) ? 1 : 0), next(url, context)) });
    const { parseProjectPolicy } = await import("@agentfense/sdk/project");
    const before = loads;
    await parseProjectPolicy("version: 1", ".agentfense.yaml");
    console.log(before, loads > 0);
  `;
  const args = ["--input-type=module", "--eval", program];
  const printed = execFileSync(process.execPath, args, { cwd: import.meta.dirname, encoding: "utf8" });
  expect(printed).toBe("0 true\n");
});
