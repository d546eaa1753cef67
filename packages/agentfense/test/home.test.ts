import { chmod, chown, lstat, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { identityOf } from "../../../test/support/identity.ts";
import { EmbeddedEngine, Sandbox } from "../src/index.ts";
import { call, startMcp } from "./mcp-client.ts";
import { agentfense, scratch, start } from "./run-cli.ts";
import { describeForBoth, places } from "./sandbox-places.ts";

describeForBoth("agentfense run --home", (as) => {
  test("keeps the home in a directory of the user's; without it the home goes with the run", async () => {
    const { cwd, temporary, surroundings } = await places(as);
    const run = async (command: string, ...options: string[]): Promise<string> =>
      (await agentfense(["run", "--no-policy", ...options, "project", "--", command], surroundings)).stdout;
    expect(await run("echo login > ~/.token; ls -A ~")).toBe(".token\n");
    expect(await run("ls -A ~")).toBe("");
    expect(await run("echo login > ~/.token; echo $HOME", "--home", "home")).toBe("/home/agent\n");
    expect(await readFile(join(cwd, "home/.token"), "utf8")).toBe("login\n");
    const { mode, uid } = await lstat(join(cwd, "home"));
    expect([mode & 0o777, uid]).toEqual([0o700, identityOf(as).uid]);
    // What its owner puts there is there, too.
    await writeFile(join(cwd, "home/notes"), "hello\n");
    expect(await run("cat ~/.token ~/notes", "--home", "home")).toBe("login\nhello\n");
    expect(await readdir(temporary)).toEqual([]);
  });

  test("with a kept delta the home is kept in it, and is none of the changes", async () => {
    const { surroundings } = await places(as);
    const run = async (command: string) =>
      await agentfense(["run", "--no-policy", "--delta", "delta", "project", "--", command], surroundings);
    expect((await run("echo login > ~/.token")).stderr).toContain("no changes");
    expect((await run("cat ~/.token")).stdout).toBe("login\n");
    const { stdout } = await agentfense(["diff", "--delta", "delta", "project"], surroundings);
    expect(stdout).toBe("");
  });

  test("mcp has it, too", async () => {
    const { cwd, surroundings } = await places(as);
    const { client, end } = await startMcp(
      ["--no-policy", "--approve", "never", "--home", "home", "project"],
      surroundings,
    );
    expect(await call(client, "shell", { command: "echo login > ~/.token; ls -A ~" })).toMatchObject({
      text: ".token",
    });
    expect(await end()).toMatchObject({ code: 0 });
    expect(await readFile(join(cwd, "home/.token"), "utf8")).toBe("login\n");
  });

  test("two at once do not have the same; one that was killed gives it back", async () => {
    const { cwd, surroundings } = await places(as);
    const args = (command: string) => ["run", "--no-policy", "--home", "home", "project", "--", command];
    const first = start(args("echo ready; sleep 600"), surroundings);
    await new Promise((resolve) => first.stdout!.once("data", resolve));
    const second = await agentfense(args("true"), surroundings);
    expect(second).toMatchObject({ code: 125 });
    expect(second.stderr).toContain(`another sandbox runs with the home ${join(cwd, "home")}`);
    first.kill("SIGKILL");
    await new Promise((resolve) => first.once("exit", resolve));
    expect(await agentfense(args("echo mine"), surroundings)).toMatchObject({ code: 0, stdout: "mine\n" });
  });

  test("LIVE-08 refuses what an agent must not write, and what is not the user's alone", async () => {
    const { cwd, surroundings } = await places(as);
    const { uid, gid } = identityOf(as);
    const own = async (path: string): Promise<void> => await chown(join(cwd, path), uid, gid);
    await mkdir(join(cwd, "real"));
    await own("real");
    await symlink("real", join(cwd, "link"));
    await mkdir(join(cwd, "open"));
    await chmod(join(cwd, "open"), 0o777);
    await own("open");
    await mkdir(join(cwd, "foreign"));
    await chown(join(cwd, "foreign"), 12_345, 12_345);
    await writeFile(join(cwd, "file"), "");
    const refused: Readonly<Record<string, string>> = {
      "project/home": "it lies in",
      project: "it lies in",
      ".": "lies in it",
      "/": "it is your own home",
      link: "it is not a directory",
      file: "it is not a directory",
      open: "it does not belong to you alone",
      foreign: "it does not belong to you alone",
      "nowhere/home": "does not exist",
    };
    for (const [home, reason] of Object.entries(refused)) {
      const { code, stderr } = await agentfense(["run", "--home", home, "project", "--", "true"], surroundings);
      expect([home, code, stderr]).toEqual([home, 2, expect.stringContaining(reason)]);
    }
    expect(await readdir(join(cwd, "real"))).toEqual([]);
  });
});

test("sandboxes of an engine keep a home in a directory, one at a time, also among engines", async () => {
  const place = await scratch();
  await mkdir(join(place, "project"));
  const home = join(place, "home");
  await using engine = await EmbeddedEngine.open();
  const open = (options: { readonly engine: EmbeddedEngine }) =>
    Sandbox.fromLocal(join(place, "project"), { ...options, policy: false, home });
  {
    await using first = await open({ engine });
    await first.run("echo login > ~/.token");
    expect(first.info.home).toBe(home);
    await expect(open({ engine })).rejects.toMatchObject({
      code: "HOME_IN_USE",
      message: expect.stringContaining(first.id),
    });
    await using other = await EmbeddedEngine.open();
    await expect(open({ engine: other })).rejects.toMatchObject({ code: "HOME_IN_USE" });
    await first.stop();
    await using second = await open({ engine: other });
    expect((await second.run("cat ~/.token")).stdout).toBe("login\n");
  }
  expect(await readFile(join(home, ".token"), "utf8")).toBe("login\n");
  const refused = (given: string) =>
    expect(Sandbox.fromLocal(join(place, "project"), { engine, policy: false, home: given }), given).rejects;
  await refused(join(place, "project/home")).toMatchObject({ code: "INVALID_ARGUMENT" });
  await refused("name").toMatchObject({ code: "INVALID_ARGUMENT", hint: expect.stringContaining("./name") });
});
