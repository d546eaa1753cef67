import { chmod, mkdir, readdir, readFile, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { agentfense, scratch } from "./run-cli.ts";

describe("the modules of the command line are kept as they were compiled", () => {
  test("in the user's directory for caches, where nobody else may look, and a second start adds nothing", async () => {
    const home = await scratch();
    await askForHelp({ HOME: home });
    const place = join(home, ".cache/agentfense/compiled");
    expect((await stat(place)).mode & 0o777).toBe(0o700);
    const kept = await filesBelow(home);
    expect(kept.length).toBeGreaterThan(2);
    await askForHelp({ HOME: home });
    expect(await filesBelow(home)).toEqual(kept);
  });

  test("where XDG_CACHE_HOME says, also behind a link", async () => {
    const [home, caches] = [await scratch(), await scratch()];
    await symlink(caches, join(home, "link"));
    await askForHelp({ HOME: home, XDG_CACHE_HOME: join(home, "link") });
    expect((await filesBelow(join(caches, "agentfense/compiled"))).length).toBeGreaterThan(2);
    expect(await readdir(home)).toEqual(["link"]);
  });

  test("those of the threads that serve, too", async () => {
    const [home, codebase] = [await scratch(), await scratch()];
    const { code } = await agentfense(["run", codebase, "--", "true"], { env: surroundings({ HOME: home }) });
    expect(code).toBe(0);
    const kept = await Promise.all((await filesBelow(home)).map((file) => readFile(join(home, file), "latin1")));
    expect(kept.filter((text) => text.includes("class MountThreadBody "))).not.toEqual([]);
  });

  test.each<[why: string, environment: Environment, prepare: (caches: string) => Promise<void>]>([
    ["the user wants none", { NODE_DISABLE_COMPILE_CACHE: "1" }, async () => {}],
    ["its directory is one in which others may write", {}, async (caches) => await openDirectory(caches, "compiled")],
    ["others may put another in its place", {}, async (caches) => await openDirectory(caches, ".")],
    ["there is no home", { HOME: "/nowhere" }, async () => {}],
  ])("nowhere when %s", async (_why, environment, prepare) => {
    const home = await scratch();
    await prepare(join(home, ".cache/agentfense"));
    await askForHelp({ HOME: home, ...environment });
    expect(await filesBelow(home)).toEqual([]);
  });
});

type Environment = Readonly<Record<string, string>>;

async function askForHelp(environment: Environment): Promise<void> {
  expect(await agentfense(["run", "--help"], { env: surroundings(environment) })).toMatchObject({
    code: 0,
    stderr: "",
  });
}

function surroundings(environment: Environment): Environment {
  return { XDG_CACHE_HOME: "", NODE_COMPILE_CACHE: "", NODE_V8_COVERAGE: "", ...environment };
}

async function openDirectory(above: string, name: string): Promise<void> {
  await mkdir(join(above, name), { recursive: true });
  await chmod(join(above, name), 0o777);
}

async function filesBelow(directory: string): Promise<readonly string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length))
    .sort();
}
