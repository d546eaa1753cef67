import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import {
  access,
  chmod,
  link,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  stat,
  writeFile,
} from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { errnoName, syscalls } from "@agentfense/fuse";
import { afterEach, describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/support/eventually.ts";
import {
  MountHost,
  type WorkspaceEvent,
  type WorkspaceMount,
  type WorkspaceSpec,
} from "../../../src/isolation/index.ts";

const isRoot = process.geteuid?.() === 0;
const reason = isRoot ? undefined : "mounting several workspaces in this process needs root";

const places: string[] = [];

afterEach(async () => {
  for (const place of places.splice(0)) await rm(place, { recursive: true, force: true });
});

/** A codebase with one file, and where to mount it. */
async function workspace(content: string): Promise<WorkspaceSpec & { events: WorkspaceEvent[] }> {
  const place = await mkdtemp(join(tmpdir(), "agentfense-host-"));
  places.push(place);
  await mkdir(join(place, "code"));
  await mkdir(join(place, "mount"));
  await writeFile(join(place, "code/file"), content);
  const events: WorkspaceEvent[] = [];
  return {
    mountPoint: join(place, "mount"),
    lowers: [join(place, "code")],
    delta: join(place, "delta"),
    rules: [{ pattern: "**/*", permission: "write" }],
    onEvent: (event) => events.push(event),
    events,
  };
}

function isMounted(mountPoint: string): boolean {
  return readFileSync("/proc/self/mountinfo", "utf8").includes(` ${mountPoint} `);
}

/** The epoll descriptors of this process that watch a connection to FUSE: one per mount thread with a mount. */
function mountThreadEpolls(): number[] {
  const fds = readdirSync("/proc/self/fd").filter((fd) => target(fd).includes("[eventpoll]"));
  return fds.filter((fd) => watched(fd).some((each) => target(each) === "/dev/fuse")).map(Number);
}

/** How many mounts each mount thread serves, fewest first. */
function mountsPerThread(): number[] {
  const counts = mountThreadEpolls().map(
    (epoll) => watched(String(epoll)).filter((fd) => target(fd) === "/dev/fuse").length,
  );
  return counts.sort((a, b) => a - b);
}

function mountThreads(): number {
  const names = readdirSync("/proc/self/task").map((task) => readFileSync(`/proc/self/task/${task}/comm`, "utf8"));
  return names.filter((name) => name.startsWith("agentfense-moun")).length;
}

function watched(epoll: string): string[] {
  const info = readFileSync(`/proc/self/fdinfo/${epoll}`, "utf8");
  return [...info.matchAll(/^tfd:\s*(\d+)/gm)].map((match) => match[1] ?? "");
}

function target(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return "";
  }
}

describe.skipIf(reason !== undefined)(`the mount host${reason ? ` (skipped: ${reason})` : ""}`, () => {
  test("spreads mounts over its mount threads, and each mount ends on its own", async () => {
    await using host = await MountHost.start({ threads: 2 });
    const specs = await Promise.all(["a", "b", "c"].map(workspace));
    const mounts: WorkspaceMount[] = [];
    for (const spec of specs) mounts.push(await host.mount(spec));
    expect(mountThreadEpolls()).toHaveLength(2);
    await mounts[1]?.unmount();
    const read = (at: number) => readFile(join(specs[at]!.mountPoint, "file"), "utf8").catch(() => "gone");
    expect([await read(0), await read(1), await read(2)]).toEqual(["a", "gone", "c"]);
  });

  test("serves the first mount from one thread, and starts another when a second mount comes", async () => {
    await using host = await MountHost.start({ threads: 2 });
    const specs = await Promise.all(["a", "b"].map(workspace));
    await host.mount(specs[0]!);
    expect(mountThreads()).toBe(1);
    await host.mount(specs[1]!);
    expect(mountThreads()).toBe(2);
    expect(mountsPerThread()).toEqual([1, 1]);
  });

  test("has as many threads as CPUs by default, also for mounts that come at once", async () => {
    await using host = await MountHost.start();
    const cpus = availableParallelism();
    const specs = await Promise.all(Array.from({ length: cpus + 1 }, (_, at) => workspace(`${at}`)));
    await Promise.all(specs.map((spec) => host.mount(spec)));
    expect(mountThreads()).toBe(cpus);
    expect(mountsPerThread()).toEqual([...Array.from({ length: cpus - 1 }, () => 1), 2]);
  });

  test("puts a mount on the thread whose mounts ask for less", async () => {
    await using host = await MountHost.start({ threads: 2 });
    const [busy, quiet, next] = await Promise.all(["busy", "quiet", "next"].map(workspace));
    await host.mount(busy!);
    const [busyThread] = mountThreadEpolls();
    await host.mount(quiet!);
    for (let i = 0; i < 2000; i++) await access(join(busy!.mountPoint, `absent-${i}`)).catch(() => {});
    await host.mount(next!);
    expect(watched(String(busyThread)).filter((fd) => target(fd) === "/dev/fuse")).toHaveLength(1);
    expect(mountsPerThread()).toEqual([1, 2]);
  });

  test("survives the death of a mount thread: its mounts are detached and reported, the others go on", async () => {
    await using host = await MountHost.start({ threads: 2 });
    const [doomed, other] = [await workspace("doomed"), await workspace("other")];
    await host.mount(doomed);
    const [epoll] = mountThreadEpolls();
    await host.mount(other);
    expect(await readFile(join(doomed.mountPoint, "file"), "utf8")).toBe("doomed");

    // Without its epoll descriptor the mount thread's next wait fails, and the thread with it.
    syscalls.close(epoll!);
    await readFile(join(doomed.mountPoint, "other-file")).catch(() => {});
    await eventually(() => expect(doomed.events.map((event) => event.kind)).toContain("mount_lost"));
    expect(isMounted(doomed.mountPoint)).toBe(false);
    expect(await readFile(join(other.mountPoint, "file"), "utf8")).toBe("other");

    const again = await host.mount(doomed);
    expect(await readFile(join(doomed.mountPoint, "file"), "utf8")).toBe("doomed");
    await again.unmount();
  });

  test("tells when a workspace was unmounted from outside", async () => {
    await using host = await MountHost.start();
    const spec = await workspace("content");
    const mount = await host.mount(spec);
    syscalls.umount(spec.mountPoint, syscalls.Mount.DETACH);
    await eventually(() =>
      expect(spec.events).toEqual([{ kind: "mount_lost", reason: "the workspace was unmounted from outside" }]),
    );
    await expect(mount.updateRules(spec.rules)).rejects.toThrow("not mounted");
    await mount.unmount();
  });

  test("refuses bad rules and bad directories, and leaves nothing mounted", async () => {
    await using host = await MountHost.start();
    const spec = await workspace("content");
    await expect(host.mount({ ...spec, rules: [{ pattern: "", permission: "read" }] })).rejects.toMatchObject({
      index: 0,
    });
    await expect(host.mount({ ...spec, lowers: [`${spec.lowers[0]}/missing`] })).rejects.toThrow("ENOENT");
    await expect(host.mount({ ...spec, mountPoint: `${spec.mountPoint}/missing` })).rejects.toThrow("ENOENT");
    expect(isMounted(spec.mountPoint)).toBe(false);
  });

  test("does not let two mounts write to one delta", async () => {
    await using host = await MountHost.start();
    const [first, second] = [await workspace("first"), await workspace("second")];
    const mount = await host.mount(first);
    await expect(host.mount({ ...second, delta: first.delta! })).rejects.toThrow("in use by another mount");
    await mount.unmount();
    const again = await host.mount({ ...second, delta: first.delta! });
    await again.unmount();
  });

  test("serves several workspaces as directories of one mount, above which there is nothing to be had", async () => {
    await using host = await MountHost.start();
    const [first, second] = [await workspace("first"), await workspace("second")];
    const { mountPoint } = first;
    const home = { lowers: [], delta: join(mountPoint, "../home"), rules: first.rules };
    const readOnly = { ...second, rules: [{ pattern: "**/*", permission: "read" } as const] };
    const { trees: mounts, served } = await host.mountTogether({ mountPoint, trees: [first, readOnly, home] });
    await served;
    expect(mounts.map((mount) => mount.mountPoint)).toEqual(["0", "1", "2"].map((name) => join(mountPoint, name)));
    expect(mountsPerThread()).toEqual([1]);
    // What the directory above is asked first must not teach the kernel that the workspaces cannot do it either.
    const errnos = [
      syscalls.getxattr(mountPoint, "user.x", Buffer.alloc(10), 10),
      syscalls.setxattr(mountPoint, "user.x", Buffer.from("1"), 0),
    ];
    expect(errnos.map((code) => errnoName(-code))).toEqual(["EACCES", "EACCES"]);
    const attempts: (() => Promise<unknown>)[] = [
      () => readdir(mountPoint),
      () => writeFile(join(mountPoint, "new"), ""),
      () => mkdir(join(mountPoint, "new")),
      () => rename(join(mountPoint, "0"), join(mountPoint, "3")),
      () => rmdir(join(mountPoint, "0")),
      () => chmod(mountPoint, 0o777),
    ];
    for (const attempt of attempts) await expect(attempt()).rejects.toThrow("EACCES");
    for (const name of ["3", "new", "00x"]) await expect(access(join(mountPoint, name))).rejects.toThrow("ENOENT");

    const at = (tree: number, name: string): string => join(mounts[tree]!.mountPoint, name);
    expect(await Promise.all([0, 1].map((tree) => readFile(at(tree, "file"), "utf8")))).toEqual(["first", "second"]);
    await writeFile(at(2, "file"), "home");
    await expect(writeFile(at(1, "file"), "x")).rejects.toThrow("EACCES");
    expect(syscalls.setxattr(at(0, "file"), "user.x", Buffer.from("1"), 0)).toBe(0);
    await expect(rename(at(0, "file"), at(2, "moved"))).rejects.toThrow("EXDEV");
    await expect(link(at(2, "file"), at(0, "linked"))).rejects.toThrow("EXDEV");
    const numbers = await Promise.all(
      [0, 1, 2].flatMap((tree) => [at(tree, ""), at(tree, "file")]).map((path) => stat(path)),
    );
    expect(new Set(numbers.map(({ ino }) => ino)).size).toBe(6);

    await mounts[1]!.updateRules([{ pattern: "**/*", permission: "none" }]);
    await expect(readFile(at(1, "file"))).rejects.toThrow("ENOENT");
    expect(await readFile(at(0, "file"), "utf8")).toBe("first");
    await mounts[2]!.unmount();
    expect(isMounted(mountPoint)).toBe(false);
    await expect(mounts[0]!.updateRules(first.rules)).rejects.toThrow("not mounted");
  });

  test("mounts all of several workspaces or none", async () => {
    await using host = await MountHost.start();
    const [first, second] = [await workspace("first"), await workspace("second")];
    const { mountPoint } = first;
    const missing = { ...second, lowers: [`${second.lowers[0]}/missing`] };
    await expect(host.mountTogether({ mountPoint, trees: [first, missing] })).rejects.toThrow("ENOENT");
    expect([isMounted(mountPoint), mountsPerThread()]).toEqual([false, []]);
    // What was opened before the failure is free again.
    const { trees } = await host.mountTogether({ mountPoint, trees: [first, second] });
    await trees[0]!.unmount();
  });

  test("cuts off who still uses a workspace that is unmounted", async () => {
    await using host = await MountHost.start();
    const spec = await workspace("content");
    const mount = await host.mount(spec);
    const fd = syscalls.open(join(spec.mountPoint, "file"), syscalls.Open.RDONLY);
    expect(fd).toBeGreaterThanOrEqual(0);
    await mount.unmount();
    expect(isMounted(spec.mountPoint)).toBe(false);
    syscalls.close(fd);
  });

  test("keeps an idle mount small", async () => {
    await using host = await MountHost.start();
    const specs = await Promise.all(Array.from({ length: 30 }, (_, index) => workspace(`${index}`)));
    await host.mount(specs[0]!);
    const before = process.memoryUsage().rss;
    for (const spec of specs.slice(1)) await host.mount(spec);
    const each = (process.memoryUsage().rss - before) / (specs.length - 1);
    expect(each).toBeLessThan(1024 * 1024);
  });
});
