import { once } from "node:events";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { describe, expect, onTestFinished, test } from "vitest";
import { eventually } from "../../../test/support/eventually.ts";
import { identityOf, reasonAgainst } from "../../../test/support/identity.ts";
import {
  type ConnectionInfo,
  EPOCH_MINOR,
  incrementEpoch,
  invalidateEntryMessage,
  invalidateInodeMessage,
  Notifier,
  ring,
  serveFuse,
  syscalls as sys,
  unmountFuse,
} from "../src/index.ts";
import { directoryFor, isMounted, run, startServer } from "./processes.ts";
import { recorder } from "./recorder.ts";

const root = identityOf("root");

describe.each(["root", "user"] as const)("as %s", (as) => {
  const against = reasonAgainst(as);
  if (against !== undefined) console.log(`not tried as ${as}: ${against}`);

  test.skipIf(against)("the memory example does ordinary file work and unmounts on SIGTERM", async () => {
    const identity = identityOf(as);
    const mountPoint = await directoryFor(identity);
    const server = await startServer("../examples/memory.ts", [mountPoint], identity);
    expect(server.ready).toBe(`memory: mounted at ${mountPoint}`);
    expect(await run("fixtures/file-work.ts", [mountPoint], identity)).toEqual({
      code: 0,
      stdout: '["a"]\n',
      stderr: "",
    });
    server.child.kill("SIGTERM");
    expect(await server.exit()).toEqual({ code: 0, signal: null, stderr: "" });
    expect(await isMounted(mountPoint)).toBe(false);
    expect(await readdir(mountPoint)).toEqual([]);
  });

  test.skipIf(against)("the loopback example does the same work on the directory behind it", async () => {
    const identity = identityOf(as);
    const source = await directoryFor(identity);
    const mountPoint = await directoryFor(identity);
    const server = await startServer("../examples/loopback.ts", [source, mountPoint], identity);
    expect(await run("fixtures/file-work.ts", [mountPoint], identity)).toEqual({
      code: 0,
      stdout: '["a"]\n',
      stderr: "",
    });
    server.child.kill("SIGINT");
    expect(await server.exit()).toEqual({ code: 0, signal: null, stderr: "" });
    expect(await isMounted(mountPoint)).toBe(false);
    expect(await readFile(join(source, "a/b/moved"), "utf8")).toBe("hello");
    expect((await stat(join(source, "a/b/moved"))).uid).toBe(identity.uid);
  });
});

const againstUser = reasonAgainst("user");
describe.skipIf(againstUser)(`an ordinary user's mount${againstUser ? `: ${againstUser}` : ""}`, () => {
  test("is made without a copy of the process, leaves none behind, and says what is missing", async () => {
    const user = identityOf("user");
    const mountPoint = await directoryFor(user);
    const { stdout, stderr } = await run("fixtures/mount-beside-memory.ts", [mountPoint], user);
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toEqual({
      faultsPerPage: 0,
      children: "",
      missing: "fusermount3 is not installed: install the package fuse3",
    });
  });

  test("that cannot be made is an error in words", async () => {
    const { code, stderr } = await run("../examples/memory.ts", ["/nowhere/at/all"], identityOf("user"));
    expect(code).toBe(1);
    expect(stderr).toMatch(/^memory: fusermount3 failed: .*\/nowhere\/at\/all.*No such file or directory\n$/);
  });
});

const againstRoot = reasonAgainst("root");
describe.skipIf(againstRoot)("a mount", () => {
  test("whose server was killed answers ENOTCONN until unmountFuse clears it", async () => {
    const mountPoint = await directoryFor(root);
    const server = await startServer("../examples/memory.ts", [mountPoint], root);
    await writeFile(join(mountPoint, "file"), "lost");
    server.child.kill("SIGKILL");
    await server.exit();

    await expect(readdir(mountPoint)).rejects.toMatchObject({ code: "ENOTCONN" });
    await unmountFuse(mountPoint, { privileged: true });
    expect(await readdir(mountPoint)).toEqual([]);
    // Not mounted any more is what was wanted: a second time is no error.
    await unmountFuse(mountPoint, { privileged: true });
  });

  test("that is busy is detached by the first signal and ended by the second", async () => {
    const mountPoint = await directoryFor(root);
    const server = await startServer("../examples/memory.ts", [mountPoint], root);
    const fd = sys.open(mountPoint, sys.Open.RDONLY | sys.Open.DIRECTORY);
    onTestFinished(() => {
      sys.close(fd);
    });
    server.child.kill("SIGTERM");
    await eventually(async () => !(await isMounted(mountPoint)));
    expect(server.child.exitCode).toBeNull();
    server.child.kill("SIGTERM");
    expect(await server.exit()).toEqual({ code: 0, signal: null, stderr: "" });
  });

  test("that cannot be made is an error in words", async () => {
    const server = run("../examples/memory.ts", ["/nowhere/at/all"], root);
    expect(await server).toEqual({ code: 1, stdout: "", stderr: "memory: mount: ENOENT\n" });
  });

  test("shares its loop with others, and each ends on its own", async () => {
    const places = await Promise.all([directoryFor(root), directoryFor(root), directoryFor(root)]);
    const server = await startServer("fixtures/serve-several.ts", places, root);
    await Promise.all(places.map((place, i) => writeFile(join(place, "which"), `${i}`)));
    const read = () => Promise.all(places.map((place) => readFile(join(place, "which"), "utf8").catch(() => "none")));
    expect(await read()).toEqual(["0", "1", "2"]);

    await unmountFuse(places[1]!, { privileged: true });
    expect(await read()).toEqual(["0", "none", "2"]);
    for (const place of places) await unmountFuse(place, { privileged: true });
    expect(await server.exit()).toEqual({ code: 0, signal: null, stderr: "" });
  });

  test("is not made when the signal says so, and ends when the file system itself aborts", async () => {
    const mountPoint = await directoryFor(root);
    const { fileSystem, calls } = recorder();
    const aborted = serveFuse({ mountPoint, fileSystem, signal: AbortSignal.abort() });
    await expect(aborted).rejects.toMatchObject({ name: "AbortError" });
    expect(calls).toEqual([]);

    const controller = new AbortController();
    await serveFuse({ mountPoint, fileSystem, signal: controller.signal, onReady: () => controller.abort() });
    expect(calls).toEqual([["destroy"]]);
    expect(await isMounted(mountPoint)).toBe(false);
  });

  test("ends when its doorbell is rung, and is unmounted then", async () => {
    const { mountPoint, doorbell, worker } = await counting();
    ring(doorbell);
    expect(await once(worker, "exit")).toEqual([0]);
    expect(await isMounted(mountPoint)).toBe(false);
  });
});

describe.skipIf(againstRoot)("a notification makes the kernel ask again:", () => {
  test("INVAL_ENTRY for the name", async () => {
    const { connection, asked } = await counting();
    await asked(stat);
    expect(await asked(stat)).toEqual({ lookups: 0, getattrs: 0, reads: 0 });
    expect(await new Notifier(connection.fd).send(invalidateEntryMessage(1, "file"))).toBe(true);
    expect(await asked(stat)).toMatchObject({ lookups: 1 });
    expect(await asked(stat)).toMatchObject({ lookups: 0 });
  });

  test("INVAL_INODE for the attributes, and for the data when an offset is given", async () => {
    const { connection, asked } = await counting();
    const notifier = new Notifier(connection.fd);
    await asked(readFile);
    await asked(readFile);
    expect(await asked(readFile)).toMatchObject({ lookups: 0, reads: 0 });

    expect(await notifier.send(invalidateInodeMessage(2, -1, 0))).toBe(true);
    expect(await asked(stat)).toEqual({ lookups: 0, getattrs: 1, reads: 0 });
    expect(await asked(readFile)).toMatchObject({ reads: 0 });
    expect(await notifier.send(invalidateInodeMessage(2, 0, 0))).toBe(true);
    expect(await asked(readFile)).toMatchObject({ reads: 1 });
  });

  test("INC_EPOCH for every name", async ({ skip }) => {
    const { connection, asked } = await counting();
    if (connection.minor < EPOCH_MINOR) skip(`the kernel speaks 7.${connection.minor}, before 7.${EPOCH_MINOR}`);
    await asked(stat);
    expect(await asked(stat)).toMatchObject({ lookups: 0 });
    expect(incrementEpoch(connection.fd)).toBe(16);
    expect(await asked(stat)).toMatchObject({ lookups: 1 });
  });

  test("what the kernel does not know is no error", async () => {
    const { connection } = await counting();
    const notifier = new Notifier(connection.fd);
    expect(await notifier.send(invalidateEntryMessage(1, "unheard-of"))).toBe(false);
    expect(await notifier.send(invalidateInodeMessage(4711, -1, 0))).toBe(false);
  });
});

/** A mount with one file whose requests are counted; served by a Worker, so that this thread may use it. */
async function counting() {
  const mountPoint = await directoryFor(root);
  const counters = new Int32Array(new SharedArrayBuffer(12));
  const worker = new Worker(join(import.meta.dirname, "fixtures/counting-worker.ts"), {
    workerData: { mountPoint, counters },
  });
  const exited = once(worker, "exit");
  onTestFinished(async () => {
    await unmountFuse(mountPoint, { privileged: true });
    await exited;
  });
  const [{ connection, doorbell }] = (await once(worker, "message")) as [
    { connection: ConnectionInfo; doorbell: number },
  ];
  /** How much the kernel asked for while the file was used. */
  const asked = async (use: (path: string) => Promise<unknown>) => {
    counters.fill(0);
    await use(join(mountPoint, "file"));
    const [lookups, getattrs, reads] = counters;
    return { lookups, getattrs, reads };
  };
  return { mountPoint, worker, connection, doorbell, asked };
}
