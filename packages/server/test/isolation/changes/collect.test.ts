import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Rule } from "@agentfense/permission";
import { type Change, diffChanges, listChanges, MountHost } from "@agentfense/server/isolation";
import { expect, test } from "vitest";
import { directory, fifo, file, link } from "../../../../../test/support/tree.ts";
import {
  type CollectedChange,
  type Collection,
  type CollectSpec,
  collectChanges,
} from "../../../src/isolation/changes/collect.ts";
import { type Arrangement, arrange, shape, WRITE_ALL } from "./arrangement.ts";

async function collect(place: Arrangement, more: Partial<CollectSpec> = {}): Promise<Collection & { staging: string }> {
  const staging = join(place.root, "staging");
  mkdirSync(staging, { recursive: true });
  const { delta, lower } = place;
  return { ...(await collectChanges({ delta, lower, rules: WRITE_ALL, staging, ...more })), staging };
}

/** "added /a file", with "!" and the reason for what is not ready. */
function told({ change, ready, entry, reason }: CollectedChange): string {
  return ready ? `${change.kind} ${change.path} ${entry?.kind}` : `! ${change.path}: ${reason}`;
}

async function list(place: Arrangement, more: { rules?: readonly Rule[]; renames?: boolean } = {}): Promise<Change[]> {
  return await Array.fromAsync(listChanges({ delta: place.delta, lowers: [place.lower], ...more }));
}

test("files are staged with their hash, mode and time", async () => {
  const place = arrange(
    { a: "old" },
    {
      tree: {
        a: file({ content: "new content", mode: 0o4755, mtime: 1_000_000 }),
        d: directory({ b: "b" }, { mode: 0o750 }),
        l: link("../out"),
      },
    },
  );
  const { changes, settled, staging } = await collect(place);
  expect(changes.map(told)).toEqual(["modified /a file", "added /d directory", "added /d/b file", "added /l symlink"]);
  const [a, d, , l] = changes;
  expect(a?.entry).toMatchObject({
    mode: 0o755,
    size: 11,
    sha256: createHash("sha256").update("new content").digest("hex"),
  });
  expect(readFileSync(join(staging, a!.entry!.staged), "utf8")).toBe("new content");
  expect(statSync(join(staging, a!.entry!.staged)).mode & 0o7777).toBe(0o600);
  expect(statSync(join(staging, a!.entry!.staged)).mtimeMs).toBe(statSync(join(place.delta, "tree/a")).mtimeMs);
  expect(Math.abs(a!.entry!.madeAtMs - Date.now())).toBeLessThan(60_000);
  expect(d?.entry).toMatchObject({ kind: "directory", mode: 0o750 });
  expect(l).toMatchObject({ change: { sensitive: true }, entry: { target: "../out" } });
  expect(settled.map(({ path }) => path)).toEqual(["/d/b", "/a", "/d", "/l"]);
  expect(shape(place.lower)).toEqual({ "/a": "644 old" });
});

test("a deleted directory becomes its entries, what is in it first", async () => {
  const place = arrange(
    { d: { x: "1", e: { y: "2" } }, f: "3" },
    { tree: { ".wh.d": "", ".wh.f": "", ".wh.never": "" } },
  );
  const { changes, settled } = await collect(place);
  expect(changes.map(({ change }) => change.path).indexOf("/d")).toBeGreaterThan(
    changes.map(({ change }) => change.path).indexOf("/d/e/y"),
  );
  expect(changes.map(told).sort()).toEqual([
    "deleted /d absent",
    "deleted /d/e absent",
    "deleted /d/e/y absent",
    "deleted /d/x absent",
    "deleted /f absent",
  ]);
  expect(settled).toEqual([
    { path: "/d", stamp: undefined },
    { path: "/f", stamp: undefined },
    { path: "/never", stamp: undefined },
  ]);
});

test("only what the rules let the sandbox write is ready", async () => {
  const rules: Rule[] = [
    { pattern: "**/*", permission: "write" },
    { pattern: "/read/**", permission: "read", priority: 1 },
    { pattern: "/view/**", permission: "view", priority: 1 },
    { pattern: "**/hidden*", permission: "none", priority: 1 },
  ];
  const place = arrange(
    { read: { a: "1" }, view: { a: "1" }, d: { w: "1", "hidden.key": "1" }, gone: { "hidden.key": "1", w: "2" } },
    {
      tree: {
        read: { a: "changed" },
        view: { a: "changed" },
        d: { "hidden.key": "changed", ".wh.w": "" },
        ".wh.gone": "",
        ".wh.read2": "",
      },
    },
  );
  const { changes } = await collect(place, { rules });
  expect(changes.map(told).sort()).toEqual([
    "! /d/hidden.key: the rules hide this path",
    "! /gone: the directory holds what the rules protect",
    "! /read/a: level read",
    "! /view/a: level view",
    "deleted /d/w absent",
    "deleted /gone/w absent",
  ]);
  expect(changes.find(({ change }) => change.path === "/d/hidden.key")?.hidden).toBe(true);
});

test("types change as plain steps", async () => {
  const place = arrange(
    { a: "file", d: { x: "1" }, e: { y: "2" } },
    { tree: { a: { inside: "1" }, d: "now a file", e: link("a") } },
  );
  const { changes } = await collect(place);
  expect(changes.map(told)).toEqual([
    "modified /a directory",
    "added /a/inside file",
    "deleted /d/x absent",
    "modified /d file",
    "deleted /e/y absent",
    "modified /e symlink",
  ]);
});

test("special files, unchanged copies and names that are no text are left", async () => {
  const place = arrange({ same: "1", touched: "2" }, { tree: { pipe: fifo(), same: "1", touched: "2" } });
  writeFileSync(Buffer.concat([Buffer.from(join(place.delta, "tree/")), Buffer.from([0x66, 0xff])]), "x");
  utimesSync(join(place.delta, "tree/touched"), 1, 1);
  const { changes, settled } = await collect(place);
  expect(changes.map(told)).toEqual([
    "! /f\udcff: a name or a link that is not UTF-8",
    "! /pipe: a fifo, socket or device is never carried over",
  ]);
  expect(settled.map(({ path }) => path)).toEqual(["/same", "/touched"]);
});

test("holes stay holes, and what is too large is left", async () => {
  const place = arrange({}, { tree: { small: "1" } });
  writeFileSync(join(place.delta, "tree/sparse"), "start");
  truncateSync(join(place.delta, "tree/sparse"), 64 << 20);
  const { changes, staging } = await collect(place);
  const sparse = changes.find(({ change }) => change.path === "/sparse");
  const staged = statSync(join(staging, sparse!.entry!.staged));
  expect([staged.size, staged.blocks < 100]).toEqual([64 << 20, true]);
  const limited = await collect(arrange({}, { tree: { a: "x".repeat(600), b: "x".repeat(600) } }), { maxBytes: 1000 });
  expect(limited.changes.map(told)).toEqual(["added /a file", "! /b: it is too large"]);
});

test("without a staging directory nothing is written", async () => {
  const place = arrange({ a: "1" }, { tree: { a: "2", ".wh.b": "" } });
  const { changes } = await collect(place, { staging: undefined });
  expect(changes.map(told)).toEqual(["modified /a file"]);
  expect(changes[0]?.entry).toMatchObject({ staged: "", sha256: "", size: 1 });
  expect(readdirSync(join(place.root, "staging"))).toEqual([]);
});

test("only some paths, and a path without a change is an error", async () => {
  const place = arrange({}, { tree: { a: "1", d: { b: "2", c: "3" } } });
  expect((await collect(place, { paths: ["/d/b"] })).changes.map(told)).toEqual([
    "added /d directory",
    "added /d/b file",
  ]);
  await expect(collect(place, { paths: ["/nothing"] })).rejects.toMatchObject({ code: "NO_CHANGE" });
});

test("a file that keeps changing is busy, the rest is ready", async () => {
  const place = arrange({}, { tree: { quiet: "1" } });
  const busy = join(place.delta, "tree/busy");
  writeFileSync(busy, Buffer.alloc(40 << 20, "x"));
  let writing = true;
  const writer = (async () => {
    while (writing) {
      appendFileSync(busy, "y");
      await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  const { changes, staging } = await collect(place);
  writing = false;
  await writer;
  expect(changes.map(told)).toEqual(["! /busy: busy: it kept changing while it was being copied", "added /quiet file"]);
  expect(readdirSync(staging)).toHaveLength(1);
});

test("deltas in use can be listed, compared and collected", async () => {
  const place = arrange({ a: "1\n" });
  await place.inMount(async (at) => {
    writeFileSync(at("/a"), "2\n");
    writeFileSync(at("/b"), "3\n");
    expect((await list(place)).map(({ kind, path }) => `${kind} ${path}`)).toEqual(["modified /a", "added /b"]);
    expect(
      (await Array.fromAsync(diffChanges({ delta: place.delta, lowers: [place.lower] }))).map(({ path }) => path),
    ).toEqual(["/a", "/b"]);
    expect((await collect(place)).changes.map(told)).toEqual(["modified /a file", "added /b file"]);
  });
});

test("a copy that was never written does not take the place of newer work", async () => {
  const place = arrange({ opened: "1", chmodded: "1", written: "1", moved: "1", target: "0", gone: "1" });
  await place.inMount((at) => {
    for (const name of ["/opened", "/gone"]) closeSync(openSync(at(name), "r+"));
    chmodSync(at("/chmodded"), 0o755);
    writeFileSync(at("/written"), "2");
    renameSync(at("/moved"), at("/target"));
    const names = execFileSync("getfattr", ["-d", "-m", "-", at("/opened")]).toString();
    expect(names).not.toContain("agentfense");
  });
  for (const name of ["opened", "chmodded", "written"]) {
    writeFileSync(join(place.root, "newer"), "newer");
    renameSync(join(place.root, "newer"), join(place.lower, name));
  }
  rmSync(join(place.lower, "gone"));
  const { changes, settled } = await collect(place);
  expect(changes.map(told)).toEqual([
    "! /chmodded: only its mode was changed, and the codebase's content is newer",
    "deleted /moved absent",
    "modified /target file",
    "modified /written file",
  ]);
  expect(settled.map(({ path }) => path)).toEqual(["/gone", "/moved", "/opened", "/target", "/written"]);
  expect((await list(place)).map(({ path }) => path)).toEqual(["/chmodded", "/moved", "/target", "/written"]);
});

test("a file that moved is one change", async () => {
  const place = arrange({ old: "the very same content", other: "same size but others", kept: "k" });
  await using host = await MountHost.start();
  mkdirSync(join(place.root, "mnt2"));
  await using mount = await host.mount({
    mountPoint: join(place.root, "mnt2"),
    lowers: [place.lower],
    delta: place.delta,
    rules: WRITE_ALL,
  });
  renameSync(join(mount.mountPoint, "old"), join(mount.mountPoint, "new"));
  rmSync(join(mount.mountPoint, "other"));
  expect(await list(place, { renames: true })).toEqual([
    { kind: "renamed", path: "/new", oldPath: "/old", modes: [0o644, 0o644], type: "file", size: 21, sensitive: false },
    { kind: "deleted", path: "/other", type: "file", size: 20, sensitive: false },
  ]);
  expect((await list(place)).map(({ kind, path }) => `${kind} ${path}`)).toEqual([
    "added /new",
    "deleted /old",
    "deleted /other",
  ]);
});

test("lists and diffs show nothing that the rules hide or only let be looked at", async () => {
  const rules: Rule[] = [
    { pattern: "**/*", permission: "write" },
    { pattern: "/secrets/**", permission: "none", priority: 1 },
    { pattern: "/secrets/public", permission: "read", priority: 2 },
    { pattern: "/view/**", permission: "view", priority: 1 },
  ];
  const place = arrange(
    { secrets: { token: "1", public: "1" }, view: { v: "1" }, gone: { x: "1" } },
    { tree: { secrets: { token: "2", public: "2", ".wh.more": "" }, view: { v: "2" }, a: "1", ".wh.gone": "" } },
  );
  const shown = ["/a", "/gone", "/gone/x", "/secrets/public"];
  expect((await list(place, { rules })).map(({ path }) => path)).toEqual(shown);
  const spec = { delta: place.delta, lowers: [place.lower], rules };
  expect((await Array.fromAsync(diffChanges(spec))).map(({ path }) => path)).toEqual(shown);
  await expect(Array.fromAsync(diffChanges({ ...spec, paths: ["/secrets/token"] }))).rejects.toMatchObject({
    code: "NO_CHANGE",
  });
});
