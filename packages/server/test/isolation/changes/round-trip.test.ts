import {
  appendFileSync,
  chmodSync,
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { compileRules, LEVEL, type Policy, type Rule } from "@agentfense/permission";
import { describe, expect, test } from "vitest";
import { Random } from "../../../../../test/conformance/model/random.ts";
import { RULED_NAMES, randomRules } from "../../../../../test/conformance/model/random-rules.ts";
import { rounds } from "../../../../../test/support/rounds.ts";
import { link, type Tree } from "../../../../../test/support/tree.ts";
import { arrange, shape, WRITE_ALL } from "./arrangement.ts";

const STEPS = 150;

describe("random work in a mount, applied to the codebase", () => {
  const seeds = Array.from({ length: rounds(8) }, (_, index) => 7000 + index);

  test.for(seeds)("makes it what the mount showed, seed %i", async (seed) => {
    const random = new Random(seed);
    const place = arrange(randomTree(random, 0));
    let seen = {};
    // Several mounts of one delta: it is read back each time.
    for (let round = 0; round < 2; round++) {
      await place.inMount((at) => {
        for (let step = 0; step < STEPS; step++) takeStep(random, at);
        seen = shape(at(""));
      });
    }
    const report = await place.apply();
    expect(report.changes.filter(({ outcome }) => outcome !== "applied")).toEqual([]);
    expect(shape(place.lower)).toEqual(seen);
    expect(readdirSync(join(place.delta, "tree"))).toEqual([]);
  });

  test.for(seeds)("keeps to the rules, seed %i", async (seed) => {
    const random = new Random(seed);
    const rules: Rule[] = [...randomRules(random), { pattern: "/b/**", permission: "write", priority: 50 }];
    const policy = compileRules(rules);
    const place = arrange(randomTree(random, 0), { rules });
    const before = shape(place.lower);
    let seen: Record<string, string> = {};
    await place.inMount((at) => {
      for (let step = 0; step < STEPS; step++) takeStep(random, at);
      seen = shape(at(""));
    });
    const part = random.chance(50)
      ? readdirSync(join(place.delta, "tree")).filter((name) => !name.startsWith(".wh."))
      : [];
    if (part.length > 0) await place.apply({ paths: [random.pick(part)] }).catch(() => {});
    const report = await place.apply();
    const after = shape(place.lower);
    const refused = report.changes.filter(({ outcome }) => outcome !== "applied").map(({ path }) => path);
    const excepted = (path: string): boolean => refused.some((each) => `${path}/`.startsWith(`${each}/`));
    const writable = (path: string): boolean => isWritable(policy, path);

    // What the sandbox may not write is as it was.
    const guarded = (state: Record<string, string>) => pick(state, (path) => !writable(path) && !path.endsWith("/"));
    expect(guarded(after)).toEqual(guarded(before));
    // What it may write is as it left it, but for what was refused.
    const its = (state: Record<string, string>) => pick(state, (path) => writable(path) && !excepted(path));
    expect(its(after)).toEqual(its(seen));
    // And with what is left in the delta the sandbox sees what it saw.
    await place.inMount((at) => expect(shape(at(""))).toEqual(seen));
  });

  test("every path is refused when nothing is writable", async () => {
    const random = new Random(1);
    const place = arrange(randomTree(random, 0));
    const before = shape(place.lower);
    await place.inMount((at) => {
      for (let step = 0; step < STEPS; step++) takeStep(random, at);
    }, WRITE_ALL);
    const report = await place.apply({ rules: [] });
    expect(new Set(report.changes.map(({ outcome }) => outcome))).toEqual(new Set(["refused"]));
    expect(shape(place.lower)).toEqual(before);
  });
});

function isWritable(policy: Policy, path: string): boolean {
  return policy.decide(path.replace(/\/$/, "")).level === LEVEL.write;
}

function pick(state: Record<string, string>, wanted: (path: string) => boolean): Record<string, string> {
  return Object.fromEntries(Object.entries(state).filter(([path]) => wanted(path)));
}

function randomTree(random: Random, depth: number): Tree {
  const entries: Record<string, Tree[string]> = {};
  for (const name of RULED_NAMES) {
    const kind = random.weighted({ none: 25, file: 40, directory: depth < 2 ? 30 : 0, link: 5 });
    if (kind === "file") entries[name] = random.text(random.pick([0, 5, 7000]));
    if (kind === "directory") entries[name] = randomTree(random, depth + 1);
    if (kind === "link") entries[name] = link("a");
  }
  return entries;
}

/** The steps below follow links, and they run as root: no target may lead to anything outside of the mount. */
const LINK_TARGETS = ["a", "b/a", "/agentfense-no-such-place/x"];

/** One operation on random paths; that it may fail is part of the game. */
function takeStep(random: Random, at: (path: string) => string): void {
  const path = (): string =>
    at(`/${Array.from({ length: random.between(1, 3) }, () => random.pick(RULED_NAMES)).join("/")}`);
  const steps: Record<string, () => void> = {
    write: () => writeFileSync(path(), random.text(random.pick([0, 9, 5000]))),
    append: () => appendFileSync(path(), "more"),
    truncate: () => truncateSync(path(), random.below(20)),
    mkdir: () => mkdirSync(path(), { mode: random.pick([0o755, 0o700]) }),
    unlink: () => unlinkSync(path()),
    rmdir: () => rmdirSync(path()),
    removeAll: () => rmSync(path(), { recursive: true }),
    rename: () => renameSync(path(), path()),
    // The steps are taken on the host, by root: no link may lead to anything of the host's.
    symlink: () => symlinkSync(random.pick(LINK_TARGETS), path()),
    link: () => linkSync(path(), path()),
    chmod: () => chmodSync(path(), random.pick([0o644, 0o755, 0o600, 0o777])),
  };
  try {
    steps[random.pick(Object.keys(steps))]!();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
  }
}
