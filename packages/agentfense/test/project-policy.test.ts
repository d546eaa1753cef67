import { chown, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { agentfense, scratch, startMount } from "./run-cli.ts";
import { describeForBoth, places } from "./sandbox-places.ts";

const POLICY = `version: 1
preset: read-only
permissions:
  - { pattern: "/docs/**", permission: write }
  - { pattern: "/.env", permission: none }
`;

/** `project/` with a policy, and `view/`. */
async function project(policy = POLICY): Promise<string> {
  const cwd = await scratch();
  for (const directory of ["project/docs", "view"]) await mkdir(join(cwd, directory), { recursive: true });
  await writeFile(join(cwd, "project/.env"), "TOKEN=1");
  await writeFile(join(cwd, "project/.agentfense.yaml"), policy);
  return cwd;
}

describe("policy commands take the rules of the project", () => {
  test("tree shows what they allow, and says whose they are", async () => {
    const cwd = await project();
    expect(await agentfense(["policy", "tree", "--all", "project"], { cwd })).toEqual({
      code: 0,
      stdout: "read  /\nread  ├── .agentfense.yaml\nnone  ├── .env\nwrite └── docs/\n",
      stderr: "agentfense: rules from .agentfense.yaml\n",
    });
  });

  test.each([
    ["--preset", ["--preset", "view-only"], "view  /\n"],
    ["--rules", ["--rules", "rules.json"], "view  /\n"],
    ["--no-policy", ["--no-policy"], "read  /\n"],
  ])("%s on the command line wins", async (_option, options, root) => {
    const cwd = await project();
    await writeFile(join(cwd, "rules.json"), '[{"pattern":"**/*","permission":"view"}]');
    const { code, stdout, stderr } = await agentfense(["policy", "tree", ...options, "project"], { cwd });
    expect({ code, stderr, root: stdout.slice(0, root.length) }).toEqual({ code: 0, stderr: "", root });
  });

  test("explain and lint too; nobody may write the policy, whatever its rules say", async () => {
    const cwd = await project('version: 1\npermissions:\n  - { pattern: "**/*", permission: write, priority: 9 }\n');
    const { stdout } = await agentfense(["policy", "explain", "project", ".agentfense.yaml", "docs"], { cwd });
    expect(stdout).toContain("/.agentfense.yaml  read  (a file)");
    expect(stdout).toContain("/docs  write  (a directory)");
    const lint = await agentfense(["policy", "lint", "project"], { cwd });
    expect(lint).toMatchObject({ code: 1, stderr: "agentfense: rules from .agentfense.yaml\n" });
    expect(lint.stdout).toContain("/.env looks like a secret, and rule 0 gives it the level write");
  });

  test("a mistake is named with its place, and nothing is done", async () => {
    const cwd = await project("version: 1\npermisions: []\n");
    expect(await agentfense(["policy", "tree", "project"], { cwd })).toEqual({
      code: 2,
      stdout: "",
      stderr:
        `agentfense: ${cwd}/project/.agentfense.yaml:2:1: unknown key "permisions"; did you mean permissions?\n` +
        "hint: correct it, or leave it aside with --no-policy\n",
    });
    expect((await agentfense(["policy", "tree", "--no-policy", "project"], { cwd })).code).toBe(0);
  });

  test("a link is not followed", async () => {
    const cwd = await scratch();
    await mkdir(join(cwd, "project"));
    await writeFile(join(cwd, "elsewhere.yaml"), POLICY);
    await symlink("../elsewhere.yaml", join(cwd, "project/.agentfense.yaml"));
    const { code, stderr } = await agentfense(["policy", "tree", "project"], { cwd });
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("is a symbolic link") });
  });
});

test("mount takes the rules of the project and keeps the policy from being written", async () => {
  const cwd = await project('version: 1\npermissions:\n  - { pattern: "**/*", permission: write }\n');
  const mount = await startMount(["project", "view"], { cwd });
  expect(mount.ready).toContain("(rules from .agentfense.yaml, temporary delta");
  const policy = join(cwd, "view/.agentfense.yaml");
  expect(await readFile(policy, "utf8")).toContain("version: 1");
  await expect(writeFile(policy, "version: 1\npreset: full-access\n")).rejects.toMatchObject({ code: "EACCES" });
  await writeFile(join(cwd, "view/other.yaml"), "fine");
  expect(await mount.end("SIGTERM")).toMatchObject({ code: 0, stderr: "agentfense: rules from .agentfense.yaml\n" });
});

describe("run refuses what a file cannot allow itself", () => {
  test.each(["private", "host"])("the network %s", async (network) => {
    const cwd = await project(`version: 1\nnetwork: ${network}\n`);
    expect(await agentfense(["run", "project", "--", "true"], { cwd })).toEqual({
      code: 2,
      stdout: "",
      stderr:
        `agentfense: ${cwd}/project/.agentfense.yaml: asks for the network ${network}, which a file cannot allow itself\n` +
        `hint: add --network=${network} if you agree, or --network=none to run without\n`,
    });
  });

  test("a runtime that does not go with the command line", async () => {
    const cwd = await project("version: 1\nruntime: docker\n");
    const { code, stderr } = await agentfense(["run", "--root", ".", "project", "--", "true"], { cwd });
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining("--root belongs to the runtime bwrap"),
    });
  });
});

describeForBoth("agentfense run in a project with a policy", (as) => {
  test("has its rules, variables and limits; the command line wins, the policy stays as it is", async () => {
    const here = await places(as);
    const policy = join(here.cwd, "project/.agentfense.yaml");
    const text = `version: 1
preset: full-access
network: host
resources: { disk: 64k }
env: { COLOUR: blue, SHAPE: round }
`;
    await writeFile(policy, text);
    await chown(policy, here.surroundings.identity!.uid, here.surroundings.identity!.gid);
    const command = [
      "echo $COLOUR $SHAPE",
      "echo 'preset: full-access' >> .agentfense.yaml || echo kept",
      "rm -f .agentfense.yaml || echo kept",
      "mv README.md .agentfense.yaml || echo kept",
      "head -c 100000 /dev/zero > big || echo full",
      "rm -f big",
    ].join("; ");
    const args = ["run", "--network=none", "--env", "COLOUR=red", "--apply", "project", "--", command];
    const { code, stdout, stderr } = await agentfense(args, here.surroundings);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "red round\nkept\nkept\nkept\nfull\n" });
    expect(stderr).toMatch(/^agentfense: rules, limits and env from \.agentfense\.yaml$/m);
    expect(stderr).toMatch(/^agentfense: no changes$/m);
    expect(await readFile(policy, "utf8")).toBe(text);
  });

  test("cannot be given a policy by what runs in it", async () => {
    const here = await places(as);
    const args = ["run", "--preset", "full-access", "project", "--", "echo 'version: 1' > .agentfense.yaml"];
    const { code, stderr } = await agentfense(args, here.surroundings);
    expect(code).not.toBe(0);
    expect(stderr).toContain("Permission denied");
    expect(stderr).toMatch(/^agentfense: no changes$/m);
  });
});
