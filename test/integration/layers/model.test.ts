import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { collectChanges, MountHost } from "@agentfense/server/isolation";
import fc from "fast-check";
import { expect, test } from "vitest";
import { rounds } from "../../support/rounds.ts";
import { type LivePlace, livePlace, WRITE_ALL } from "./place.ts";

// The model: a codebase, and what the sandbox changed since its last sync. What it wrote, deleted or made is the sandbox's
// until it syncs; everything else is the codebase's, as soon as it was told. An entry of the sandbox's outranks the
// codebase's; a sync makes the codebase what the sandbox sees wherever the sandbox changed something.

const RUNS = rounds(25);

const PATHS = ["/a", "/b", "/d", "/d/x", "/d/y", "/d/e", "/d/e/z"] as const;

type Step =
  | {
      readonly kind: "write" | "append" | "delete" | "mkdir" | "link" | "open";
      readonly by: "sandbox";
      readonly path: string;
      readonly text: string;
    }
  | { readonly kind: "rename"; readonly by: "sandbox"; readonly path: string; readonly to: string }
  | {
      readonly kind: "upload" | "remove" | "mkdir" | "link";
      readonly by: "codebase";
      readonly path: string;
      readonly text: string;
    }
  | { readonly kind: "sync" | "discard"; readonly by: "service" };

const path = fc.constantFrom(...PATHS);
const text = fc.string({ minLength: 1, maxLength: 12 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom("write", "append", "delete", "mkdir", "link", "open" as const),
      by: fc.constant("sandbox" as const),
      path,
      text,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("rename" as const), by: fc.constant("sandbox" as const), path, to: path }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom("upload", "remove", "mkdir", "link" as const),
      by: fc.constant("codebase" as const),
      path,
      text,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom("sync", "sync", "discard" as const),
      by: fc.constant("service" as const),
    }),
  },
) as fc.Arbitrary<Step>;

/** A tree as a value. */
function shape(root: string, below = ""): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(join(root, below)).sort()) {
    const shown = `${below}/${name}`;
    const status = lstatSync(root + shown);
    if (status.isDirectory()) Object.assign(found, { [shown]: "directory" }, shape(root, shown));
    else
      found[shown] = status.isSymbolicLink()
        ? `-> ${readlinkSync(root + shown)}`
        : readFileSync(root + shown, "latin1");
  }
  return found;
}

function tolerant(run: () => void): void {
  try {
    run();
  } catch {
    // refused: the same for the view, whatever the reason
  }
}

function inSandbox(place: LivePlace, action: Extract<Step, { by: "sandbox" }>): void {
  const at = place.at(action.path);
  tolerant(() => {
    if (action.kind === "rename") renameSync(at, place.at(action.to));
    else if (action.kind === "write") writeFileSync(at, action.text);
    else if (action.kind === "append") writeFileSync(at, action.text, { flag: "a" });
    else if (action.kind === "delete") rmSync(at, { recursive: true });
    else if (action.kind === "mkdir") mkdirSync(at);
    else if (action.kind === "link") symlinkSync(action.text.replaceAll("\0", "0"), at);
    else writeFileSync(at, "", { flag: "r+" });
  });
}

/** Changes the codebase and gives the paths. */
function inCodebase(place: LivePlace, action: Extract<Step, { by: "codebase" }>): string[] {
  const at = place.below(action.path);
  const isDirectory = existsSync(at) && lstatSync(at).isDirectory();
  const inTheWay = [dirname(action.path)].some((parent) => {
    const above = place.below(parent);
    return parent !== "/" && !(existsSync(above) && lstatSync(above).isDirectory());
  });
  if (action.kind === "remove") {
    const below = isDirectory
      ? readdirSync(at, { recursive: true }).map((name) => `${action.path}/${String(name)}`)
      : [];
    rmSync(at, { recursive: true, force: true });
    return [...below, action.path];
  }
  if (inTheWay || (isDirectory && action.kind !== "mkdir")) return [];
  if (action.kind === "upload") place.replace(action.path, action.text);
  else {
    if (isDirectory) return [];
    rmSync(at, { force: true });
    if (action.kind === "mkdir") mkdirSync(at);
    else symlinkSync(action.text.replaceAll("\0", "0"), at);
  }
  return [action.path];
}

async function sync(place: LivePlace): Promise<void> {
  const { delta, lower, staging } = place;
  rmSync(staging, { recursive: true });
  mkdirSync(staging);
  const { changes, settled } = await collectChanges({ delta, lower, rules: WRITE_ALL, staging });
  for (const { change, ready, entry } of changes) {
    expect(ready, `${change.path} must be ready`).toBe(true);
    if (entry === undefined) continue;
    const at = place.below(change.path);
    if (entry.kind === "directory") {
      if (!(existsSync(at) && lstatSync(at).isDirectory())) rmSync(at, { force: true });
      mkdirSync(at, { recursive: true });
      chmodSync(at, entry.mode);
      continue;
    }
    rmSync(at, { recursive: true, force: true });
    if (entry.kind === "symlink") symlinkSync(entry.target, at);
    if (entry.kind === "file") renameSync(join(staging, entry.staged), at);
  }
  await place.mount.codebaseChanged(changes.map(({ change }) => change.path));
  expect(await place.mount.settle(settled)).toEqual([]);
}

test("sandbox, uploads, syncs and discards in any order: the view is what the layers say", async () => {
  await using host = await MountHost.start();
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      await using place = await livePlace({ "/a": "one", "/d/x": "two", "/d/e/z": "three" }, { host });
      const opened: string[] = [];
      for (const action of steps) {
        if (action.by === "sandbox" && action.kind === "open") opened.push(action.path);
        if (action.by === "sandbox") inSandbox(place, action);
        else if (action.by === "codebase") {
          // What the kernel remembers of before must not show after.
          const before = shape(place.mount.mountPoint);
          const changed = inCodebase(place, action);
          await place.mount.codebaseChanged(changed);
          const after = shape(place.mount.mountPoint);
          for (const [where, what] of Object.entries(after)) {
            const touched = changed.some((each) => where === each || where.startsWith(`${each}/`));
            if (!touched) expect(what, where).toBe(before[where]);
          }
        } else if (action.kind === "sync") {
          const [before, codebase] = [shape(place.mount.mountPoint), shape(place.lower)];
          await sync(place);
          const after = shape(place.mount.mountPoint);
          // A copy that was only opened gives way to newer work in the codebase.
          const mayGiveWay = (each: string): boolean => opened.some((it) => each === it || each.startsWith(`${it}/`));
          for (const each of new Set([...Object.keys(before), ...Object.keys(after)])) {
            if (!(mayGiveWay(each) && after[each] === codebase[each])) expect(after[each], each).toBe(before[each]);
          }
          expect(shape(place.lower)).toEqual(after);
          opened.length = 0;
          expect(readdirSync(join(place.delta, "tree"))).toEqual([]);
        } else {
          await place.mount.discard(undefined);
          expect(shape(place.mount.mountPoint)).toEqual(shape(place.lower));
        }
      }
      // What a fresh mount of the same layers shows is the truth.
      const live = shape(place.mount.mountPoint);
      expect(shape(await place.remount())).toEqual(live);
    }),
    { numRuns: RUNS, endOnFailure: true },
  );
});
