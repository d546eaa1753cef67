import { lstat, mkdir, readdir, readFile, readlink, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { compileRules, levelName } from "@agentfense/permission";
import { readProjectPolicy, takenRules } from "@agentfense/sdk/project";
import { describe, expect, test } from "vitest";
import { findOutputs, findSecrets } from "../../src/init/findings.ts";
import { policyText } from "../../src/init/policy-text.ts";
import { surveyDirectory } from "../../src/policy/survey.ts";
import { atATerminal, reasonAgainstTerminals } from "../at-a-terminal.ts";
import { agentfense, scratch } from "../run-cli.ts";

/** A directory with these files; a name that ends in / is an empty directory. */
async function tree(files: Readonly<Record<string, string>>): Promise<string> {
  const top = await scratch();
  for (const [path, content] of Object.entries(files)) {
    await mkdir(path.endsWith("/") ? join(top, path) : join(top, path, ".."), { recursive: true });
    if (!path.endsWith("/")) await writeFile(join(top, path), content);
  }
  return top;
}

const WEB_PROJECT = {
  ".env": "TOKEN=1",
  ".env.example": "",
  ".git/config": "[remote]\n url = https://me:token@example.com/x.git\n",
  "certificates/server.pem": "-----BEGIN PRIVATE KEY-----",
  "dist/index.js": "",
  "node_modules/dependency/test/key.pem": "",
  "package.json": '{ "main": "./dist/index.js", "scripts": {} }',
  "src/index.ts": "",
  "tsconfig.json": '{\n  // where to\n  "compilerOptions": { "outDir": "./generated/js" }\n}',
};

describe("agentfense init", () => {
  test("writes a policy that can be read, hides the secrets and lets builds write", async () => {
    const cwd = await tree(WEB_PROJECT);
    const { code, stdout, stderr } = await agentfense(["init"], { cwd });
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: expect.stringMatching(
        /^wrote \.agentfense\.yaml: preset agent-safe, JavaScript, 4 secrets hidden\nnothing wrong; \d+ remarks with agentfense policy lint --all\n$/,
      ),
      stderr: "",
    });
    const policy = await readProjectPolicy(cwd);
    expect(policy).toEqual({
      path: join(cwd, ".agentfense.yaml"),
      preset: "agent-safe",
      permissions: [
        { pattern: "/dist/**", permission: "write" },
        { pattern: "/generated/js/**", permission: "write" },
        { pattern: "/.env", permission: "none", type: "file", priority: 100 },
        { pattern: "/.env.example", permission: "none", type: "file", priority: 100 },
        { pattern: "/.git/config", permission: "none", type: "file", priority: 100 },
        { pattern: "/certificates/server.pem", permission: "none", type: "file", priority: 100 },
      ],
    });
    const lint = await agentfense(["policy", "lint", "."], { cwd });
    expect(lint).toMatchObject({ code: 0, stdout: expect.stringMatching(/^nothing wrong/) });
  });

  test("hides a file with a key in it, and says why", async () => {
    const cwd = await tree({ "src/config.js": `const key = "ghp_${"Zk3vQ9xLm2Tf7Rb1Wc8Yd5Hg0Jn4Ps6AuEiO"}";\n` });
    expect(await agentfense(["init"], { cwd })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("1 secret hidden"),
    });
    expect((await readProjectPolicy(cwd))?.permissions).toEqual([
      { pattern: "/src/config.js", permission: "none", type: "file", priority: 100 },
    ]);
    expect(await readFile(join(cwd, ".agentfense.yaml"), "utf8")).toContain(
      "  # line 1 holds what looks like a secret (GitHub token)\n",
    );
  });

  test("does not overwrite unless told to, and then replaces a link instead of following it", async () => {
    const cwd = await tree({ "precious.txt": "precious" });
    await symlink("precious.txt", join(cwd, ".agentfense.yaml"));
    expect(await agentfense(["init"], { cwd })).toEqual({
      code: 1,
      stdout: "",
      stderr: `agentfense: ${cwd}/.agentfense.yaml is there already\nhint: --force replaces it, --stdout only shows the new one\n`,
    });
    expect(await readlink(join(cwd, ".agentfense.yaml"))).toBe("precious.txt");
    expect((await agentfense(["init", "--force", "--preset", "development"], { cwd })).code).toBe(0);
    expect(await readFile(join(cwd, "precious.txt"), "utf8")).toBe("precious");
    expect((await lstat(join(cwd, ".agentfense.yaml"))).isFile()).toBe(true);
    expect((await readProjectPolicy(cwd))?.preset).toBe("development");
    expect((await readdir(cwd)).sort()).toEqual([".agentfense.yaml", "precious.txt"]);
  });

  test("--stdout prints the policy and writes nothing", async () => {
    const cwd = await tree({ "go.mod": "module x" });
    const { code, stdout } = await agentfense(["init", "--stdout"], { cwd });
    expect({ code, first: stdout.split("\n")[0] }).toEqual({
      code: 0,
      first: expect.stringMatching(/^# What a sandbox/),
    });
    expect(await readdir(cwd)).toEqual(["go.mod"]);
  });

  test.each([
    [["init", "absent"], "DIR does not exist: absent"],
    [["init", "a", "b"], "init takes one directory"],
    [["init", "--preset", "agent-sfae"], 'no preset "agent-sfae"'],
  ])("%j is given wrongly", async (args, reason) => {
    const { code, stderr } = await agentfense(args, { cwd: await scratch() });
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(reason) });
  });
});

describe("what builds write", () => {
  test.each([
    ["Python", { "pyproject.toml": "", "htmlcov/": "", "build/": "" }, ["/build/**", "/htmlcov/**"]],
    ["Rust", { "Cargo.toml": "", ".cargo/config.toml": '[build]\ntarget-dir = "artifacts"\n' }, ["/artifacts/**"]],
    ["Go", { "go.mod": "", "bin/tool": "" }, ["/bin/**"]],
    ["Make", { Makefile: "CC = cc\nBUILD_DIR := ./_build\nOUT = $(BUILD_DIR)/x\nSRC_DIR = src\n" }, ["/_build/**"]],
    ["CMake", { "CMakeLists.txt": "", "build/": "" }, ["/build/**"]],
    ["JavaScript", { "packages/a/package.json": "{}", "packages/a/dist/x": "" }, ["/packages/a/dist/**"]],
  ])("%s", async (system, files, patterns) => {
    const top = await tree(files as Record<string, string>);
    expect(await findOutputs(top, surveyDirectory(top).entries)).toEqual([{ system, patterns }]);
  });

  test("many places of one name become one pattern", async () => {
    const packages = ["a", "b", "c", "d"].flatMap((name) => [
      [`packages/${name}/package.json`, "{}"],
      [`packages/${name}/dist/x.js`, ""],
    ]);
    const top = await tree(Object.fromEntries(packages) as Record<string, string>);
    expect(await findOutputs(top, surveyDirectory(top).entries)).toEqual([
      { system: "JavaScript", patterns: ["**/dist/**"] },
    ]);
  });

  test.each(["../outside", "/etc", "src", ".", "a*", "$(X)", ".git/hooks", "lib"])(
    "a file that names %j as such a place is not believed",
    async (place) => {
      const top = await tree({ "package.json": "{}", "tsconfig.json": JSON.stringify({ outDir: place }) });
      expect(await findOutputs(top, surveyDirectory(top).entries)).toEqual([{ system: "JavaScript", patterns: [] }]);
    },
  );

  test("a manifest that is a link is not read", async () => {
    const top = await tree({ "package.json": "{}" });
    const elsewhere = await tree({ "tsconfig.json": '{ "outDir": "stolen" }' });
    await symlink(join(elsewhere, "tsconfig.json"), join(top, "tsconfig.json"));
    expect(await findOutputs(top, surveyDirectory(top).entries)).toEqual([{ system: "JavaScript", patterns: [] }]);
  });
});

describe("secrets", () => {
  const file = (path: string) => ({ path, type: "file" }) as const;

  test("many of one kind, or with an odd name, are hidden by one pattern", () => {
    const keys = Array.from({ length: 6 }, (_, index) => file(`/keys/${index}.pem`));
    expect(findSecrets([...keys, file("/a*\nb/.env")])).toEqual([
      {
        reason: "looks like a secret",
        examples: ["/keys/0.pem", "/keys/1.pem", "/keys/2.pem"],
        count: 6,
        rules: [{ pattern: "**/*.pem", permission: "none", priority: 101 }],
      },
      {
        reason: "looks like a secret",
        examples: ["/a*\nb/.env"],
        count: 1,
        rules: [{ pattern: "**/.env*", permission: "none", priority: 101 }],
      },
    ]);
  });

  test.each(["agent-safe", "read-only", "full-access", "development", "view-only"])(
    "none stays visible on top of %s",
    async (preset) => {
      const top = await tree(WEB_PROJECT);
      const { entries } = surveyDirectory(top);
      const secrets = findSecrets(entries);
      await writeFile(join(top, ".agentfense.yaml"), policyText(preset, { outputs: [], secrets }));
      const rules = compileRules(takenRules({}, await readProjectPolicy(top)));
      for (const path of ["/.env", "/.git/config", "/certificates/server.pem"]) {
        expect(levelName(rules.decide(path).level)).toBe("none");
      }
    },
  );
});

describe("the survey", () => {
  test("has a bound, and looks at the top first", async () => {
    const top = await tree({ "a/b/c/d.txt": "", "e.txt": "", "f/g.txt": "" });
    const { complete, entries } = surveyDirectory(top, 4);
    expect({ complete, entries: entries.map(({ path, type }) => ({ path, type })) }).toEqual({
      complete: false,
      entries: [
        { path: "/a", type: "directory" },
        { path: "/e.txt", type: "file" },
        { path: "/f", type: "directory" },
        { path: "/a/b", type: "directory" },
      ],
    });
  });

  test("follows no link and does not look into what others wrote", async () => {
    const top = await tree({ "node_modules/x/package.json": "", ".git/objects/aa/bb": "", ".git/config": "" });
    await symlink("/etc", join(top, "link"));
    const paths = surveyDirectory(top).entries.map(({ path }) => path);
    expect(paths).toEqual(["/.git", "/link", "/node_modules", "/.git/config", "/.git/objects"]);
  });

  const SETTINGS =
    '[core]\n\trepositoryformatversion = 0\n[remote "origin"]\n\turl = git@example.com:a/b.git\n\tfetch = +a:b\n';
  const KEY = `const key = "AKIA${"Q7ZK2LW9XR4TN8VB"}";\n`;

  test("--for coding writes rules to code by: git's settings show when they hold no credentials, keys in files hide them", async () => {
    const files = {
      ".git/config": SETTINGS,
      ".env": "A=1",
      "src/a.ts": "",
      "src/keys.ts": `\n${KEY}`,
      "package.json": "{}",
    };
    const cwd = await tree(files);
    expect(await agentfense(["init", "--for", "coding"], { cwd })).toMatchObject({ code: 0 });
    const policy = await readProjectPolicy(cwd);
    expect(policy).toMatchObject({
      preset: "development",
      permissions: [
        { pattern: "/.git/config", permission: "read", type: "file", priority: 101 },
        { pattern: "/.env", permission: "none", type: "file", priority: 100 },
        { pattern: "/src/keys.ts", permission: "none", type: "file", priority: 100 },
      ],
    });
    const text = await readFile(join(cwd, ".agentfense.yaml"), "utf8");
    expect(text).toContain("# line 2 holds what looks like a secret (AWS access key id)\n");
    expect(text).toContain("# git's settings hold no credentials");
    const levels = compileRules(takenRules({}, policy));
    const paths = ["/src/a.ts", "/.git/config", "/.git/hooks/x", "/.git/index", "/.env", "/src/keys.ts"];
    expect(paths.map((path) => levelName(levels.decide(path).level))).toEqual([
      ...["write", "read", "read", "write", "none", "none"],
    ]);
  });

  test.each([
    ["https://me:token@example.com/x.git", "url of a remote"],
    ["https://ghp_abc@example.com/x.git", "token as a user"],
    ["https://example.com/x.git?key=1", "key in a query"],
  ])("--for coding leaves git's settings hidden where they could hold credentials: %s", async (url) => {
    const cwd = await tree({ ".git/config": SETTINGS.replace("git@example.com:a/b.git", url) });
    await agentfense(["init", "--for", "coding"], { cwd });
    const levels = compileRules(takenRules({}, await readProjectPolicy(cwd)));
    expect(levelName(levels.decide("/.git/config").level)).toBe("none");
  });

  test("--for review shows history without settings, --for data lets results be written and sources not", async () => {
    const cwd = await tree({
      ".git/config": SETTINGS,
      ".git/HEAD": "",
      "results/": "",
      "a.ipynb": "{}",
      "data/x.csv": "",
    });
    const levelsFor = async (purpose: string, paths: readonly string[]) => {
      expect(await agentfense(["init", "--force", "--for", purpose], { cwd })).toMatchObject({ code: 0 });
      const policy = compileRules(takenRules({}, await readProjectPolicy(cwd)));
      return paths.map((path) => levelName(policy.decide(path).level));
    };
    expect(await levelsFor("review", ["/.git/HEAD", "/.git/config", "/data/x.csv", "/results/y"])).toEqual([
      ...["read", "none", "read", "read"],
    ]);
    expect(await levelsFor("data", ["/.git/HEAD", "/data/x.csv", "/results/y", "/a.ipynb"])).toEqual([
      ...["none", "read", "write", "write"],
    ]);
    expect((await agentfense(["init", "--for", "codin"], { cwd })).stderr).toContain("coding");
    expect((await agentfense(["init", "--for", "data", "--preset", "read-only"], { cwd })).code).toBe(2);
  });

  const against = reasonAgainstTerminals();
  test.skipIf(against !== undefined)(
    `at a terminal it asks what agents are to do${against ? `: ${against}` : ""}`,
    async () => {
      const cwd = await tree({ "src/a.ts": "" });
      const { code } = await atATerminal(["init"], { cwd }, [{ wait: "What are agents to do here", type: "rev\r" }]);
      expect(code).toBe(0);
      expect((await readProjectPolicy(cwd))?.preset).toBe("agent-safe");
      const again = await atATerminal(["init", "--force"], { cwd }, [
        { wait: "What are agents to do here", type: "\r" },
      ]);
      expect(again.code).toBe(0);
      expect((await readProjectPolicy(cwd))?.preset).toBe("development");
    },
  );
});
