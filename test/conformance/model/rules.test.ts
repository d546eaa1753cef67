import { describe, expect, test } from "vitest";
import { rounds } from "../../support/rounds.ts";
import { openWorkspace } from "../../support/workspace.ts";
import { type Caller, outcome, type SystemCallError, startCaller } from "../posix/caller.ts";
import { GuardedModel, type ModelEntry, type Prediction, type Visible } from "./guarded-model.ts";
import { Random } from "./random.ts";
import { RULED_NAMES, randomRules } from "./random-rules.ts";
import { referenceLevel } from "./reference-rules.ts";
import { randomEntries, treeOf } from "./ruled-entries.ts";

const OPERATIONS_PER_ROUND = 150;

describe("random rules", () => {
  test("show exactly what a naive reading of the rules shows, and let nothing else be seen or changed", async () => {
    await using caller = await startCaller();
    for (let round = 0; round < rounds(25); round++) await guardedRound(caller, freshSeed());
  });

  test("that replace each other on a live mount are seen at once", async () => {
    const seed = freshSeed();
    const random = new Random(seed);
    const entries = randomEntries(random);
    const first = randomRules(random);
    await using workspace = await openWorkspace({ lower: treeOf(entries), rules: first });
    await using caller = await startCaller();
    let rules = first;
    for (let round = 0; round < rounds(20); round++) {
      const model = new GuardedModel(entries, (path) => referenceLevel(rules, path));
      expect(await walk(caller, workspace.mountPoint), `seed ${seed}, rules ${JSON.stringify(rules)}`).toEqual(
        model.visible(),
      );
      rules = randomRules(random);
      await workspace.updateRules(rules);
    }
  });
});

function freshSeed(): number {
  const asked = Number(process.env.AGENTFENSE_SEED);
  return Number.isInteger(asked) && asked > 0 ? asked : 1 + Math.floor(Math.random() * 1e9);
}

async function guardedRound(caller: Caller, seed: number): Promise<void> {
  const random = new Random(seed);
  const entries = randomEntries(random);
  const rules = randomRules(random);
  const model = new GuardedModel(entries, (path) => referenceLevel(rules, path));
  const about = `repeat with AGENTFENSE_SEED=${seed}; rules ${JSON.stringify(rules)}`;
  await using workspace = await openWorkspace({ lower: treeOf(entries), rules });
  const root = workspace.mountPoint;
  expect(await walk(caller, root), about).toEqual(model.visible());

  const taken: string[] = [];
  for (let count = 0; count < OPERATIONS_PER_ROUND; count++) {
    const attempt = randomAttempt(random, model);
    const got = await attempt.run(caller, root);
    taken.push(`${attempt.shown} = ${got}`);
    const expected = "ok" in attempt.prediction ? ["ok"] : attempt.prediction.errno;
    expect(expected, `${taken.slice(-25).join("\n")}\n${about}`).toContain(got);
    if (got === "ok" && "ok" in attempt.prediction) attempt.prediction.ok();
    if (count % 30 === 29) expect(await walk(caller, root), `${taken.join("\n")}\n${about}`).toEqual(model.visible());
  }
  const live = await walk(caller, root);
  expect(live, `${taken.join("\n")}\n${about}`).toEqual(model.visible());
  await workspace.remount();
  expect(await walk(caller, root), `after a remount; ${taken.join("\n")}\n${about}`).toEqual(live);
  workspace.assertLowerUntouched();
}

interface Attempt {
  readonly shown: string;
  readonly prediction: Prediction;
  run(caller: Caller, root: string): Promise<string>;
}

const ATTEMPTS = {
  lstat: 8,
  list: 8,
  read: 10,
  append: 8,
  truncate: 3,
  chmod: 4,
  utimens: 2,
  setxattr: 2,
  accessRead: 3,
  accessWrite: 3,
  readlink: 2,
  create: 9,
  mkdir: 9,
  symlink: 3,
  unlink: 9,
  rmdir: 7,
  link: 7,
  rename: 12,
};

function randomAttempt(random: Random, model: GuardedModel): Attempt {
  const path = randomPath(random, model);
  const other = randomPath(random, model);
  const made = (text: string): ModelEntry => ({ type: "file", content: text });
  const one = (
    name: string,
    prediction: Prediction,
    call: (caller: Caller, path: string) => Promise<unknown>,
  ): Attempt => ({
    shown: `${name}(${path})`,
    prediction,
    run: (caller, root) => outcome(call(caller, root + path)),
  });
  const two = (name: "link" | "rename", prediction: Prediction): Attempt => ({
    shown: `${name}(${path}, ${other})`,
    prediction,
    run: (caller, root) => outcome(caller[name](root + path, root + other)),
  });

  switch (random.weighted(ATTEMPTS)) {
    case "lstat":
      return one("lstat", model.lstat(path), (caller, at) => caller.lstat(at));
    case "list":
      return one("list", model.list(path), async (caller, at) => {
        expect(await caller.listdir(at), path).toEqual(model.childrenSeen(path));
      });
    case "read":
      return one("read", model.read(path), async (caller, at) => {
        const entry = model.seen(path);
        expect(await contentOf(caller, at), path).toBe(entry?.type === "file" ? entry.content : undefined);
      });
    case "append":
      return one("append", model.append(path, "+"), (caller, at) => withOpen(caller, at, "O_WRONLY|O_APPEND", "+"));
    case "truncate":
      return one("truncate", model.truncate(path), (caller, at) => caller.truncate(at, 0));
    case "chmod":
      return one("chmod", model.touch(path), (caller, at) => caller.chmod(at, 0o755));
    case "utimens":
      return one("utimens", model.touch(path), (caller, at) => caller.utimens(at, "now", "now"));
    case "setxattr":
      return one("setxattr", model.touch(path), (caller, at) => caller.setxattr(at, "user.a", "1"));
    case "accessRead":
      return one("access R_OK", model.access(path, "read"), (caller, at) => caller.access(at, 4));
    case "accessWrite":
      return one("access W_OK", model.access(path, "write"), (caller, at) => caller.access(at, 2));
    case "readlink":
      return one("readlink", model.readlink(path), (caller, at) => caller.readlink(at));
    case "create":
      return one("create", model.create(path, made("new")), (caller, at) =>
        withOpen(caller, at, "O_WRONLY|O_CREAT|O_EXCL", "new"),
      );
    case "mkdir":
      return one("mkdir", model.create(path, { type: "directory" }), (caller, at) => caller.mkdir(at));
    case "symlink":
      return one("symlink", model.create(path, { type: "symlink", target: "nowhere" }), (caller, at) =>
        caller.symlink("nowhere", at),
      );
    case "unlink":
      return one("unlink", model.unlink(path), (caller, at) => caller.unlink(at));
    case "rmdir":
      return one("rmdir", model.rmdir(path), (caller, at) => caller.rmdir(at));
    case "link":
      return two("link", model.link(path, other));
    case "rename":
      // What happens to entries that a moved directory carries under other rules is not promised, only that they obey
      // the rules of where they are: the security suite has that. Here such a rename is left out.
      return model.carriesOtherLevels(path, other) && "ok" in model.rename(path, other)
        ? one("lstat", model.lstat(path), (caller, at) => caller.lstat(at))
        : two("rename", model.rename(path, other));
  }
}

function randomPath(random: Random, model: GuardedModel): string {
  const known = [...model.entries.keys()];
  if (known.length > 0 && random.chance(70)) {
    const path = random.pick(known);
    return random.chance(30) ? `${path}/${random.pick(RULED_NAMES)}` : path;
  }
  return `/${Array.from({ length: random.between(1, 3) }, () => random.pick(RULED_NAMES)).join("/")}`;
}

async function withOpen(caller: Caller, path: string, flags: string, text: string): Promise<void> {
  const fd = await caller.open(path, flags, 0o644);
  await caller.write(fd, text);
  await caller.close(fd);
}

async function contentOf(caller: Caller, path: string): Promise<string> {
  const fd = await caller.open(path, "O_RDONLY");
  try {
    return await caller.read(fd, 65536);
  } finally {
    await caller.close(fd);
  }
}

/** The mount as somebody finds it who opens everything that is listed. */
async function walk(caller: Caller, root: string, below = ""): Promise<Visible> {
  const found: Visible = {};
  for (const name of await caller.listdir(root + below)) {
    const path = `${below}/${name}`;
    const { type, mode } = await caller
      .lstat(root + path)
      .catch((error: SystemCallError) => ({ type: error.code, mode: 0 }));
    if (type === "directory") {
      found[path] = "directory";
      Object.assign(found, await walk(caller, root, path));
    } else if (type.startsWith("E")) {
      found[path] = `listed, but ${type}`;
    } else if (type === "symlink") {
      found[path] = `symlink to ${await caller.readlink(root + path)}`;
    } else {
      const content = await contentOf(caller, root + path).catch((error: SystemCallError) => error.code);
      found[path] = `file: ${content}`;
      expect((mode & 0o444) !== 0, `mode ${mode.toString(8)} of ${path}`).toBe(content !== "EACCES");
    }
  }
  return found;
}
