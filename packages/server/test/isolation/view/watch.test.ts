import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Rule } from "@agentfense/permission";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { aWhile, eventually } from "../../../../../test/support/eventually.ts";
import { MountHost, type WorkspaceMount } from "../../../src/isolation/mount/host.ts";
import type { ViewChange } from "../../../src/isolation/view/api.ts";
import { MountedFiles } from "../../../src/isolation/view/files.ts";
import { KernelWatch } from "../../../src/isolation/view/kernel-watch.ts";
import { ViewThread } from "../../../src/isolation/view/thread.ts";
import { ViewWatches } from "../../../src/isolation/view/watches.ts";

const RULES: readonly Rule[] = [
  { pattern: "**/*", permission: "write" },
  { pattern: "/listed/**", permission: "view", priority: 10 },
  { pattern: "/hidden/**", permission: "none", priority: 10 },
  { pattern: "/hidden/shown.txt", permission: "read", priority: 20 },
  { pattern: "**/secret*", permission: "none", priority: 20 },
];

let root: string;
let host: MountHost;
let thread: ViewThread;
let kernelWatch: KernelWatch;
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "agentfense-watch-"));
  host = await MountHost.start();
  thread = new ViewThread();
  kernelWatch = new KernelWatch();
});
afterAll(async () => {
  kernelWatch[Symbol.dispose]();
  await thread[Symbol.asyncDispose]();
  await host.close();
  rmSync(root, { recursive: true, force: true });
});

interface Place {
  readonly lower: string;
  readonly mount: WorkspaceMount;
  readonly files: MountedFiles;
  /** A path of the mount on the host. */
  at(path: string): string;
  setRules(rules: readonly Rule[]): Promise<void>;
  /** Puts a file into the codebase behind the mount's back, as an upload does. */
  upload(path: string, content: string): Promise<void>;
}

let count = 0;
let place: Place;
beforeEach(async () => {
  count += 1;
  const directory = join(root, String(count));
  const lower = join(directory, "lower");
  for (const name of ["lower/src/deep", "lower/listed", "lower/hidden", "delta", "mnt"]) {
    mkdirSync(join(directory, name), { recursive: true });
  }
  writeFileSync(join(lower, "src/a.ts"), "a");
  writeFileSync(join(lower, "src/secret.ts"), "s");
  writeFileSync(join(lower, "listed/l.txt"), "l");
  symlinkSync("src", join(lower, "link"));
  symlinkSync("src/a.ts", join(lower, "link.ts"));
  symlinkSync("/etc", join(lower, "out"));
  const mount = await host.mount({
    mountPoint: join(directory, "mnt"),
    lowers: [lower],
    delta: join(directory, "delta"),
    rules: RULES,
  });
  let rules = RULES;
  const files = new MountedFiles({
    thread,
    mount: () => mount,
    target: "/workspace",
    kernelWatch,
    rules: () => rules,
  });
  place = {
    lower,
    mount,
    files,
    at: (path) => join(mount.mountPoint, path),
    async setRules(next) {
      await mount.updateRules(next);
      rules = next;
      files.rulesChanged();
    },
    async upload(path, content) {
      writeFileSync(join(lower, "..", "new"), content);
      mkdirSync(join(lower, path, ".."), { recursive: true });
      renameSync(join(lower, "..", "new"), join(lower, path));
      await mount.codebaseChanged([`/${path}`]);
      files.changedOutside([`/${path}`]);
    },
  };
  return async () => {
    await files.close();
    await mount.unmount();
  };
});

/** What a watch has told so far, as "rename a.ts", and whether it is over. */
class Seen {
  readonly told: string[] = [];
  readonly over: Promise<unknown>;

  constructor(changes: AsyncIterable<ViewChange>) {
    this.over = (async () => {
      for await (const { kind, path } of changes) this.told.push(`${kind} ${path}`);
      return "ended";
    })().catch((error: unknown) => error);
  }

  /** Waits until all of these were told, in whatever company. */
  async tells(...expected: string[]): Promise<void> {
    await eventually(() => expect(this.told).toEqual(expect.arrayContaining(expected)));
  }
}

async function watch(path: string, options: { recursive?: boolean; signal?: AbortSignal } = {}): Promise<Seen> {
  return new Seen(await place.files.watch(path, options));
}

/** Everything before it is told when this is: events of one mount come in their order. */
async function settled(seen: Seen, directory: string): Promise<void> {
  const mark = `mark-${seen.told.length}`;
  writeFileSync(place.at(join(directory, mark)), "");
  await eventually(() => expect(seen.told.join("\n")).toContain(mark));
}

describe("a directory", () => {
  test("tells what comes, changes and goes in it, whoever does it", async () => {
    const seen = await watch("src");
    execFileSync("sh", ["-c", "echo b > b.ts; echo more >> a.ts; chmod 600 a.ts; mv b.ts c.ts; rm c.ts; mkdir d"], {
      cwd: place.at("src"),
    });
    await seen.tells("rename b.ts", "change b.ts", "change a.ts", "rename c.ts", "rename d");
    await place.files.makeDirectory("src/by-api");
    await seen.tells("rename by-api");
    writeFileSync(place.at("src/deep/unwatched"), "");
    writeFileSync(place.at("elsewhere"), "");
    await settled(seen, "src");
    expect(seen.told.join("\n")).not.toMatch(/unwatched|elsewhere/);
  });

  test("writes through a descriptor that was open before are told", async () => {
    await using file = await open(place.at("src/a.ts"), "a");
    const seen = await watch("src");
    await file.write("more");
    await seen.tells("change a.ts");
  });

  test("is the workspace itself, a link to one, or one that is only listed", async () => {
    const [top, linked, listed] = [await watch("/"), await watch("link"), await watch("listed")];
    writeFileSync(place.at("new"), "");
    writeFileSync(place.at("src/new.ts"), "");
    await top.tells("rename new");
    await linked.tells("rename new.ts");
    await place.upload("listed/other.txt", "x");
    await listed.tells("rename other.txt");
  });

  test.each([
    ["hidden", "hidden/nothing", "ENOENT"],
    ["secret", "src/secret.ts", "ENOENT"],
    ["absent", "src/nothing", "ENOENT"],
    ["a way out", "out", "EXDEV"],
    ["below a file", "src/a.ts/x", "ENOTDIR"],
  ])("is refused when it is %s", async (_title, path, errno) => {
    await expect(place.files.watch(path)).rejects.toMatchObject({ code: "FILE_FAILED", errno });
  });

  test("that is deleted or moved ends the watch, after saying so", async () => {
    await place.files.makeDirectory("mine");
    await place.files.makeDirectory("other");
    const [deleted, moved] = [await watch("mine"), await watch("other")];
    await place.files.remove("mine");
    await place.files.move("other", "another");
    expect(await deleted.over).toBe("ended");
    expect(await moved.over).toBe("ended");
    expect([deleted.told.at(-1), moved.told.at(-1)]).toEqual(["rename ", "rename "]);
  });
});

describe("a file", () => {
  test("is watched by its name: it may be replaced, and go and come again", async () => {
    const [seen, linked] = [await watch("src/a.ts"), await watch("link.ts")];
    execFileSync("sh", ["-c", "echo x >> a.ts"], { cwd: place.at("src") });
    await seen.tells("change ");
    await linked.tells("change ");
    execFileSync("sh", ["-c", "echo y > t; mv t a.ts; touch b"], { cwd: place.at("src") });
    await seen.tells("rename ");
    const before = seen.told.length;
    execFileSync("sh", ["-c", "rm a.ts; sleep 0.1; echo z > a.ts"], { cwd: place.at("src") });
    await eventually(() => expect(seen.told.length).toBeGreaterThan(before));
    await eventually(() => expect(seen.told.at(-1)).toBe("change "));
    expect(new Set(seen.told)).toEqual(new Set(["change ", "rename "]));
  });

  test("has nothing below it, whatever is asked for", async () => {
    const seen = await watch("src/a.ts", { recursive: true });
    await place.setRules([...RULES]);
    await seen.tells("change ");
    writeFileSync(place.at("src/deep/x"), "");
    writeFileSync(place.at("src/other"), "");
    writeFileSync(place.at("src/replacement"), "new");
    renameSync(place.at("src/replacement"), place.at("src/a.ts"));
    await seen.tells("rename ");
    expect(new Set(seen.told)).toEqual(new Set(["change ", "rename "]));
  });

  test("that may be seen but not read is watched too: stat tells as much", async () => {
    const seen = await watch("listed/l.txt");
    await place.upload("listed/l.txt", "longer");
    await seen.tells("rename ");
    expect((await place.files.stat("listed/l.txt")).size).toBe("longer".length);
  });
});

describe("all the way down", () => {
  test("directories that were there, that are made later, and what stood in them already", async () => {
    const seen = await watch("/", { recursive: true });
    writeFileSync(place.at("src/deep/x"), "");
    await seen.tells("rename src/deep/x");
    execFileSync("sh", ["-c", "mkdir -p n/e/w && echo > n/e/w/file"], { cwd: place.at("src") });
    await seen.tells("rename src/n", "rename src/n/e", "rename src/n/e/w", "rename src/n/e/w/file");
    writeFileSync(place.at("src/n/e/w/later"), "");
    await seen.tells("rename src/n/e/w/later");
  });

  test("a directory that moves goes on under its new name", async () => {
    const seen = await watch("/", { recursive: true });
    execFileSync("sh", ["-c", "mkdir -p one/below && echo > one/below/f"], { cwd: place.at("") });
    await seen.tells("rename one/below/f");
    renameSync(place.at("one"), place.at("two"));
    await seen.tells("rename one", "rename two", "rename two/below/f");
    writeFileSync(place.at("two/below/g"), "");
    await seen.tells("rename two/below/g");
    expect(seen.told).not.toContain("rename one/below/g");
  });

  test("ends with an error when there are more directories than can be watched", async () => {
    const watches = new ViewWatches({
      thread,
      kernel: kernelWatch,
      view: () => ({ mountPoint: place.mount.mountPoint, outside: place.mount.outside, target: "/workspace" }),
      rules: () => RULES,
      mostDirectories: 3,
    });
    await expect(watches.watch([], { recursive: true })).rejects.toMatchObject({ code: "RESOURCES_EXHAUSTED" });
    // What was marked for it is free again.
    const seen = new Seen(await watches.watch(["src"], { recursive: true }));
    execFileSync("mkdir", ["-p", place.at("src/1/2/3/4")]);
    expect(await seen.over).toMatchObject({ code: "RESOURCES_EXHAUSTED" });
  });
});

describe("what others change behind the mount", () => {
  test("a file in the codebase, also in directories that are new", async () => {
    const [flat, deep] = [await watch("/"), await watch("/", { recursive: true })];
    await place.upload("top.txt", "1");
    await place.upload("src/deep/b.ts", "1");
    await place.upload("new/er/c.ts", "1");
    await flat.tells("rename top.txt");
    await deep.tells("rename top.txt", "rename src/deep/b.ts", "rename new/er/c.ts");
    writeFileSync(place.at("new/er/d.ts"), "");
    await deep.tells("rename new/er/d.ts");
    expect(flat.told).not.toContain("rename src/deep/b.ts");
  });

  test("nothing that the rules hide, and the way to what they show", async () => {
    const seen = await watch("/", { recursive: true });
    await place.upload("hidden/key", "hush");
    await place.upload("src/secret-2.ts", "hush");
    await place.upload("src/secrets/deep", "hush");
    await settled(seen, "");
    expect(seen.told.filter((line) => !line.includes("mark"))).toEqual([]);
    await place.upload("hidden/shown.txt", "public");
    await seen.tells("rename hidden", "rename hidden/shown.txt");
    expect(seen.told.join("\n")).not.toMatch(/key|secret/);
  });

  test("a codebase directory that is deleted and comes again is watched again", async () => {
    const seen = await watch("/", { recursive: true });
    rmSync(join(place.lower, "src"), { recursive: true });
    const gone = ["/src", "/src/a.ts", "/src/deep", "/src/secret.ts"];
    await place.mount.codebaseChanged(gone);
    place.files.changedOutside(gone);
    await seen.tells("rename src", "rename src/a.ts");
    await place.upload("src/again.ts", "1");
    await seen.tells("rename src/again.ts");
    await eventually(() => {
      writeFileSync(place.at(`src/${seen.told.length}-mine.ts`), "");
      expect(seen.told.join("\n")).toMatch(/src\/\d+-mine\.ts/);
    });
  });
});

describe("rules that change", () => {
  test("hide what is watched: that ends the watch", async () => {
    const seen = await watch("src", { recursive: true });
    await place.setRules([...RULES, { pattern: "/src/**", permission: "none", priority: 50 }]);
    expect(await seen.over).toBe("ended");
    expect(seen.told.at(-1)).toBe("rename ");
  });

  test("hide a part of it: nothing of that is told, even of a file that is still open", async () => {
    await using file = await open(place.at("src/deep/open"), "w");
    const seen = await watch("/", { recursive: true });
    await place.setRules([...RULES, { pattern: "/src/deep/**", permission: "none", priority: 50 }]);
    await seen.tells("change "); // look again
    await file.write("more");
    await settled(seen, "");
    expect(seen.told.join("\n")).not.toContain("deep");
  });

  test("show more: that is watched from then on", async () => {
    const seen = await watch("/", { recursive: true });
    await place.setRules([{ pattern: "**/*", permission: "write" }]);
    await seen.tells("change ");
    await eventually(() => {
      writeFileSync(place.at(`hidden/${seen.told.length}-new`), "");
      expect(seen.told.join("\n")).toMatch(/hidden\/\d+-new/);
    });
  });
});

describe("the end of a watch", () => {
  test("comes with the reader's signal, and with its leaving", async () => {
    const controller = new AbortController();
    const seen = await watch("src", { signal: controller.signal });
    controller.abort();
    expect(await seen.over).toBe("ended");
    await expect(place.files.watch("src", { signal: controller.signal })).rejects.toMatchObject({ code: "CANCELLED" });
    const changes = await place.files.watch("src");
    writeFileSync(place.at("src/one"), "");
    for await (const { path } of changes) {
      expect(path).toBe("one");
      break;
    }
    const again = await watch("src");
    writeFileSync(place.at("src/two"), "");
    await again.tells("rename two");
  });

  test.each(["closed first", "unmounted under them"])("comes with the end of the mount: %s", async (how) => {
    const seen = [await watch("/", { recursive: true }), await watch("src/a.ts"), await watch("src")];
    if (how === "closed first") await place.files.close();
    await place.mount.unmount();
    expect(await Promise.all(seen.map(({ over }) => over))).toEqual(["ended", "ended", "ended"]);
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(place.mount.mountPoint);
    expect(seen.flatMap(({ told }) => told)).toEqual([]);
  });

  test("is not the end of another watch on the same directory", async () => {
    const controller = new AbortController();
    const first = await watch("src", { signal: controller.signal });
    const second = await watch("src");
    controller.abort();
    await first.over;
    await place.files.stat("src"); // the thread has done what was asked of it before
    await aWhile(50);
    writeFileSync(place.at("src/later"), "");
    await second.tells("rename later");
  });
});

test("a reader that does not read is told to look again, once", async () => {
  const changes = await place.files.watch("src");
  execFileSync("sh", ["-c", "i=0; while [ $i -lt 5000 ]; do : > f$i; i=$((i+1)); done"], { cwd: place.at("src") });
  const seen = new Seen(changes);
  await settled(seen, "src");
  expect(seen.told).toContain("change ");
  expect(seen.told.length).toBeLessThan(6000);
});

test("more than the kernel keeps is told as a call to look again, and the watch goes on", async () => {
  const seen = await watch("/", { recursive: true });
  // Nothing reads the kernel's queue while this thread waits, and events in turns do not melt into one.
  const flood = `
    const { mkdirSync, utimesSync } = require("node:fs");
    for (let i = 0; i < 10_000; i++) for (const name of ["a.ts", "deep"]) utimesSync(name, i, i);
    mkdirSync("unnoticed");
  `;
  execFileSync(process.execPath, ["-e", flood], { cwd: place.at("src") });
  await seen.tells("change ");
  await settled(seen, "src");
  await eventually(() => {
    writeFileSync(place.at(`src/unnoticed/${seen.told.length}`), "");
    expect(seen.told.join("\n")).toMatch(/src\/unnoticed\/\d+/);
  });
});

test("a sandbox has only so many watches", async () => {
  const controllers = Array.from({ length: 64 }, () => new AbortController());
  await Promise.all(controllers.map(({ signal }) => watch("src", { signal })));
  await expect(place.files.watch("src")).rejects.toMatchObject({ code: "RESOURCES_EXHAUSTED" });
  for (const controller of controllers) controller.abort();
  await watch("src");
});
