import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { openDescriptors } from "../../../../test/support/leftovers.ts";
import { AgentWorkspace } from "../../src/workspace/agent-workspace.ts";
import { describeWorkspace, failing } from "./contract.ts";

const base = mkdtempSync(join(tmpdir(), "agentfense-workspace-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));

function newWorkspace(): AgentWorkspace {
  return new AgentWorkspace("session", { directory: mkdtempSync(join(base, "workspace-")) });
}

describeWorkspace("AgentWorkspace", async () => {
  const directory = mkdtempSync(join(base, "workspace-"));
  return {
    workspace: new AgentWorkspace("session", { directory }),
    small: new AgentWorkspace("session", { directory, maxFileBytes: 1000, maxListEntries: 5 }),
    directory,
    mode: async (path) => statSync(join(directory, path)).mode & 0o7777,
    close: async () => {},
  };
});

describe("the directory of a session", () => {
  test.each(["", ".", "..", "a/b", "../x", "a\0", ".hidden", "x".repeat(129), "a b"])("%j is no session", (id) => {
    expect(() => new AgentWorkspace(id)).toThrow(/cannot be the name of a session/);
  });

  test("is made private, found again, and removed", async () => {
    const id = `test-${process.pid}-${Date.now()}`;
    const workspace = new AgentWorkspace(id);
    try {
      const ours = new RegExp(`^${tmpdir()}/agentfense-${process.getuid!()}-\\w{6}/workspaces/${id}$`);
      expect(workspace.directory).toMatch(ours);
      expect(statSync(workspace.directory).mode & 0o777).toBe(0o700);
      await workspace.writeFile("output/result.txt", "Hello");
      expect(await new AgentWorkspace(id).readFile("output/result.txt")).toBe("Hello");
    } finally {
      await workspace.remove();
    }
    expect(existsSync(workspace.directory)).toBe(false);
    expect(await failing(workspace.readFile("output/result.txt"))).toBe("NOT_FOUND");
    expect(await failing(workspace.writeFile("a", "b"))).toBe("NOT_FOUND");
  });

  test("is not where somebody else made one before us", () => {
    const place = mkdtempSync(join(base, "shared-"));
    vi.stubEnv("TMPDIR", place);
    onTestFinished(() => void vi.unstubAllEnvs());
    // Both are somebody's who may write there: the name that could be foreseen, and one like a new one.
    for (const name of ["", "-000000"]) mkdirSync(join(place, `agentfense-${process.getuid!()}${name}`), 0o777);
    for (const name of readdirSync(place)) chmodSync(join(place, name), 0o777);
    const { directory } = new AgentWorkspace("session");
    expect(readdirSync(place)).toHaveLength(3);
    expect(new AgentWorkspace("session").directory).toBe(directory);
  });

  test("is refused when it is a link, or others may write to it", () => {
    const id = `test-${process.pid}-${Date.now()}-hostile`;
    const { directory } = new AgentWorkspace(id);
    chmodSync(directory, 0o770);
    expect(() => new AgentWorkspace(id)).toThrow(/is a link, or others can write to it/);
    rmSync(directory, { recursive: true });
    symlinkSync(base, directory);
    expect(() => new AgentWorkspace(id)).toThrow(/is a link, or others can write to it/);
    rmSync(directory);
  });

  test("that was given is made; it must be one, and stay the same one", async () => {
    const directory = join(base, "given/deeper");
    const workspace = new AgentWorkspace("session", { directory });
    await workspace.writeFile("a", "1");
    renameSync(directory, `${directory}-moved`);
    expect(await failing(workspace.readFile("a"))).toBe("NOT_FOUND");
    mkdirSync(directory);
    writeFileSync(join(directory, "a"), "of somebody else");
    expect(await failing(workspace.readFile("a"))).toBe("NOT_FOUND");
    writeFileSync(join(base, "file"), "");
    expect(() => new AgentWorkspace("session", { directory: join(base, "file") })).toThrow(/workspace/);
  });
});

describe("what somebody puts into the directory", () => {
  test("a sparse file without an end is not read into memory", async () => {
    const workspace = newWorkspace();
    writeFileSync(join(workspace.directory, "sparse"), "");
    truncateSync(join(workspace.directory, "sparse"), 2 ** 40);
    expect(await failing(workspace.readFile("sparse"))).toBe("TOO_LARGE");
  });

  test("hard links are files like others; writing replaces the name, not the content", async () => {
    const workspace = newWorkspace();
    const outside = join(base, "outside-file");
    writeFileSync(outside, "outside");
    linkSync(outside, join(workspace.directory, "hard"));
    expect(await workspace.readFile("hard")).toBe("outside");
    await workspace.writeFile("hard", "inside");
    expect(readFileSync(outside, "utf8")).toBe("outside");
  });

  test("sockets, FIFOs and devices are neither waited for nor listed", async () => {
    const workspace = newWorkspace();
    execFileSync("mkfifo", [join(workspace.directory, "fifo")]);
    expect(await workspace.list()).toEqual([]);
    expect(await failing(workspace.stat("fifo"))).toBe("WRONG_KIND");
    await workspace.delete("fifo");
    expect(readdirSync(workspace.directory)).toEqual([]);
  });

  test("names that are no text are left out, and go with their directory", async () => {
    const workspace = newWorkspace();
    const name = Buffer.from([0x61, 0xff, 0xfe]);
    mkdirSync(join(workspace.directory, "odd"));
    writeFileSync(Buffer.concat([Buffer.from(`${workspace.directory}/odd/`), name]), "");
    expect((await workspace.list("", { recursive: true })).map(({ path }) => path)).toEqual(["odd"]);
    expect(await failing(workspace.delete("odd"))).toBe("NOT_EMPTY");
    await workspace.delete("odd", { recursive: true });
    expect(await workspace.list()).toEqual([]);
  });

  test("a tree that is deeper than any path is deleted, with few descriptors", async () => {
    const workspace = newWorkspace();
    const before = openDescriptors();
    // A path of 6,000 bytes can only be made step by step.
    const make = "import os\nfor _ in range(600):\n  os.mkdir('deep-name')\n  os.chdir('deep-name')\nopen('end', 'w')";
    execFileSync("python3", ["-c", make], { cwd: workspace.directory });
    expect(await failing(workspace.list("", { recursive: true }))).toBe("TOO_LARGE");
    await workspace.delete("deep-name", { recursive: true });
    expect(await workspace.list()).toEqual([]);
    expect(openDescriptors()).toEqual(before);
  });

  test("a directory with thousands of files is deleted", async () => {
    const workspace = newWorkspace();
    execFileSync("bash", ["-c", "mkdir many && cd many && touch $(seq 3000)"], { cwd: workspace.directory });
    expect((await workspace.list("many")).length).toBe(3000);
    await workspace.delete("many", { recursive: true });
    expect(await workspace.list()).toEqual([]);
  });

  test("directories that were made read-only go as well", async () => {
    const workspace = newWorkspace();
    await workspace.writeFile("cache/module/file.txt", "");
    for (const path of ["cache/module", "cache"]) chmodSync(join(workspace.directory, path), 0o100);
    await workspace.delete("cache", { recursive: true });
    expect(await workspace.list()).toEqual([]);
  });

  test("links made to take long end soon", async () => {
    const workspace = newWorkspace();
    mkdirSync(join(workspace.directory, "a"));
    // Each ".." starts again from the top.
    symlinkSync(`${"a/../".repeat(800)}a`, join(workspace.directory, "long"));
    expect(await workspace.list("long")).toEqual([]);
    for (let n = 0; n < 30; n += 1) symlinkSync(`l${n + 1}/../l${n + 1}`, join(workspace.directory, `l${n}`));
    symlinkSync("a", join(workspace.directory, "l30"));
    expect(await failing(workspace.list("l0"))).toBe("WRONG_KIND");
  });

  test("what cannot be written leaves nothing behind", async () => {
    const workspace = newWorkspace();
    mkdirSync(join(workspace.directory, "taken/by"), { recursive: true });
    expect(await failing(workspace.writeFile("taken", "x"))).toBe("WRONG_KIND");
    expect(readdirSync(workspace.directory)).toEqual(["taken"]);
  });
});

test("descriptors are closed, whatever happens", async () => {
  const workspace = newWorkspace();
  await workspace.writeFile("a/b/c.txt", "text");
  symlinkSync("/etc", join(workspace.directory, "out"));
  symlinkSync("a/b", join(workspace.directory, "in"));
  symlinkSync("loop", join(workspace.directory, "loop"));
  const before = openDescriptors();
  const paths = ["a/b/c.txt", "in/c.txt", "in", "out", "out/passwd", "loop/x", "a/b/c.txt/d", "nothing/at/all", ""];
  for (let round = 0; round < 5; round += 1) {
    await Promise.all(
      paths.flatMap((path) => [
        workspace.readFile(path).catch(() => {}),
        workspace.list(path, { recursive: true }).catch(() => {}),
        workspace.stat(path).catch(() => {}),
        workspace.delete(`${path}/none`).catch(() => {}),
        workspace.writeFile(`${path}/d`, "x").catch(() => {}),
      ]),
    );
  }
  expect(openDescriptors()).toEqual(before);
  expect(lstatSync("/etc").isDirectory()).toBe(true);
});
