import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Rule } from "@agentfense/permission";
import { describe, expect, test } from "vitest";
import { type As, identityOf, reasonAgainst } from "../../support/identity.ts";
import { rounds } from "../../support/rounds.ts";
import { openWorkspace, type TestWorkspace } from "../../support/workspace.ts";
import { type Caller, startCaller } from "../posix/caller.ts";
import { EVERYTHING_WRITABLE } from "../posix/mounted.ts";
import { GuardedModel, type ModelEntry } from "./guarded-model.ts";
import { HiddenTwins, type TwinDifference } from "./hidden-twins.ts";
import { LONG_NAME } from "./lower-tree.ts";
import { OperationSource, type Step } from "./operations.ts";
import { Random } from "./random.ts";
import { RULED_NAMES, randomRules } from "./random-rules.ts";
import { referenceLevel } from "./reference-rules.ts";
import { randomEntries, treeOf } from "./ruled-entries.ts";

const STEPS = 200;
const CLIENTS = 2;
const REPETITIONS = 3;

/** Who serves the two mounts, and who uses them. */
const SITUATIONS: readonly { readonly title: string; readonly daemon: As; readonly agent: As }[] = [
  { title: "root", daemon: "root", agent: "root" },
  { title: "an ordinary user", daemon: "user", agent: "user" },
  { title: "an ordinary user on a mount of root", daemon: "root", agent: "user" },
];

/**
 * Where the hidden entries are.
 *
 *   codebase   in the codebase of one twin only
 *   delta      made or kept by the sandbox before the rules hid them; the other twin has removed them in time
 */
const PLACES = ["codebase", "delta"] as const;
type Place = (typeof PLACES)[number];

/**
 * What the kernel is made to forget among the steps.
 *
 *   nothing       what depends on its memory of directories is compared, too
 *   of both       the same at the same time
 *   of one twin   no answer may depend on what the kernel remembers, but for those that ask what it remembers
 */
const FORGETS = ["nothing", "of both", "of one twin"] as const;
type Forgets = (typeof FORGETS)[number];

describe("random operations on two mounts, one of which has hidden entries, have equal results", () => {
  for (const { title, daemon, agent } of SITUATIONS) {
    const reason = reasonAgainst(daemon) ?? reasonAgainst(agent);
    const who = `${title}${reason === undefined ? "" : ` (skipped: ${reason})`}`;
    test.skipIf(reason !== undefined)(`DISC-12 DISC-33 as ${who}`, async () => {
      await using clients = new AsyncDisposableStack();
      const start = async () => clients.use(await startCaller(agent === "user" ? identityOf("user") : {}));
      const callers = {
        there: await Promise.all(Array.from({ length: CLIENTS }, start)),
        absent: await Promise.all(Array.from({ length: CLIENTS }, start)),
      };
      for (const seed of seeds()) await expectEqualTwins({ daemon, callers, agent, seed });
    });
  }
});

/** One seed that was asked for, or fresh ones. */
function seeds(): number[] {
  const asked = Number(process.env.AGENTFENSE_SEED);
  if (Number.isInteger(asked) && asked > 0) return [asked];
  return Array.from({ length: rounds(3) }, () => 1 + Math.floor(Math.random() * 1e9));
}

interface Round {
  readonly daemon: As;
  readonly callers: { readonly there: readonly Caller[]; readonly absent: readonly Caller[] };
  readonly agent: As;
  readonly seed: number;
}

interface Failure {
  readonly count: number;
  readonly step: Step | undefined;
  readonly difference: TwinDifference;
  readonly story: string;
}

async function expectEqualTwins(round: Round): Promise<void> {
  const failure = await runRound(round);
  if (failure === undefined) return;
  // The kernel may forget something whenever it wants memory. What only its memory tells counts if the same steps tell it again.
  for (let repeated = 0; isOfMemory(failure) && repeated < REPETITIONS; repeated++) {
    const again = await runRound(round);
    if (again?.count !== failure.count || !isDeepStrictEqual(again.difference, failure.difference)) return;
  }
  expect.fail(
    `repeat with AGENTFENSE_SEED=${round.seed}\n${failure.story}\n` +
      `${failure.difference.where}\n  with hidden entries    ${JSON.stringify(failure.difference.there)}\n` +
      `  without hidden entries ${JSON.stringify(failure.difference.absent)}`,
  );
}

function isOfMemory({ step, difference }: Failure): boolean {
  const askedCache = step?.args[3] === "CACHED" && [difference.there, difference.absent].includes("EAGAIN");
  return askedCache || step?.name === "listEntries";
}

async function runRound({ daemon, callers, agent, seed }: Round): Promise<Failure | undefined> {
  const random = new Random(seed);
  const place: Place = random.pick(PLACES);
  // Of a file with names under different rules, which only a change of rules can bring about, the strictest known name decides:
  // there it matters what the kernel, and with it the engine, has forgotten.
  const forgets: Forgets = place === "delta" ? "nothing" : random.pick(FORGETS);
  const entries = randomEntries(random, { everyKind: true });
  const rules = hidingRules(random);
  const shown = shownOf(entries, rules);
  const owner = agent === daemon ? {} : { owner: identityOf(agent) };
  const madeFromNs = moment();
  const open = async (codebase: Map<string, ModelEntry>) =>
    await openWorkspace({
      ...owner,
      as: daemon,
      lower: treeOf(codebase),
      rules: place === "codebase" ? rules : EVERYTHING_WRITABLE,
    });
  await using there = await open(entries);
  await using absent = await open(place === "codebase" ? shown : entries);
  await using _closing = closingAll(callers);
  const usedFromNs = moment();
  const twins = new HiddenTwins(
    {
      there: { root: there.mountPoint, clients: callers.there },
      absent: { root: absent.mountPoint, clients: callers.absent },
    },
    { madeFromNs, usedFromNs, remembered: forgets === "nothing" },
  );
  const source = new OperationSource(
    random,
    [...entries.keys()].map((path) => path.slice(1)),
    {
      names: RULED_NAMES,
      curious: true,
    },
  );
  const taken: string[] = [];
  const failed = (count: number, step: Step | undefined, difference: TwinDifference): Failure => ({
    count,
    step,
    difference,
    story: [
      `hidden entries in the ${place}, the kernel forgets ${forgets}`,
      `rules ${JSON.stringify(rules)}`,
      `codebase ${JSON.stringify([...entries.keys()])}`,
      ...taken.slice(-40),
    ].join("\n"),
  });
  const take = async (count: number, prepare: (step: Step) => Step | undefined): Promise<Failure | undefined> => {
    const client = random.below(CLIENTS);
    for (const made of source.next()) {
      const step = prepare(made);
      if (step === undefined) continue;
      const result = await twins.take(client, step);
      if (typeof result === "object" || result !== "skipped") taken.push(`${client}: ${shownStep(step)}`);
      if (typeof result === "object") return failed(count, step, result);
      if (result === "succeeded") source.succeeded(step);
    }
    return undefined;
  };

  let count = 0;
  if (place === "delta") {
    for (; count < STEPS / 2; count++) {
      const failure = await take(count, (step) => keepingOwnRights(step));
      if (failure !== undefined) return failure;
    }
    await twins.closeAll(); // what is open and hidden at one twin would be open and removed at the other
    await removeHidden({ there, absent }, { there: callers.there[0]!, absent: callers.absent[0]! }, rules);
    for (const twin of [there, absent]) await twin.updateRules(rules);
    for (const caller of [...callers.there, ...callers.absent]) await caller.events();
    taken.push("the rules come into force");
  }
  const first = await twins.compareAll();
  if (first !== undefined) return failed(count, undefined, first);
  for (const end = count + STEPS; count < end; count++) {
    if (forgets !== "nothing" && random.chance(4)) {
      const forgetful = forgets === "of both" ? [there, absent] : [random.pick([there, absent])];
      for (const twin of forgetful) twin.forgetNames();
      taken.push(
        `the kernel forgets names of ${forgetful.length === 2 ? "both" : forgetful[0] === there ? "there" : "absent"}`,
      );
    }
    const failure = await take(count, forgets === "of one twin" ? independentOfMemory : (step) => step);
    if (failure !== undefined) return failure;
    if (count % 50 !== 49) continue;
    const difference = await twins.compareAll();
    if (difference !== undefined) return failed(count, undefined, difference);
  }
  return undefined;
}

/** Half of the time any rules; otherwise much may be written, and some names are hidden wherever they are. */
function hidingRules(random: Random): Rule[] {
  const rules = randomRules(random);
  if (random.chance(50)) return rules;
  const hidden = random.pick([["ab"], [".a"], ["b"], ["a", ".a"], ["ab", "ba"], ["/a/b"], ["/ab/**"], ["*/a"]]);
  return [
    { pattern: "/**", permission: "write" },
    ...rules.slice(0, random.between(0, 2)),
    ...hidden.map((pattern): Rule => ({ pattern, permission: "none", priority: 100 })),
    ...(random.chance(30) ? [{ pattern: "ba", permission: "write", priority: 200 } as const] : []),
  ];
}

/** What the rules show of some entries. */
function shownOf(entries: Map<string, ModelEntry>, rules: readonly Rule[]): Map<string, ModelEntry> {
  const model = new GuardedModel(entries, (path) => referenceLevel(rules, path));
  return new Map([...entries].filter(([path]) => model.seen(path) !== undefined));
}

/** Takes away from one twin what the rules will hide. Directories that lose something are touched at the other, too. */
async function removeHidden(
  twins: { there: TestWorkspace; absent: TestWorkspace },
  callers: { there: Caller; absent: Caller },
  rules: readonly Rule[],
): Promise<void> {
  const listing = await callers.absent.listing(twins.absent.mountPoint);
  await callers.there.listing(twins.there.mountPoint); // reading leaves traces, too
  const paths = Object.keys(listing).filter((path) => path !== ".");
  const entries = new Map(
    paths.map((path): [string, ModelEntry] => [
      `/${path}`,
      listing[path]?.type === "directory" ? { type: "directory" } : { type: "file", content: "" },
    ]),
  );
  const shown = shownOf(entries, rules);
  const hidden = paths.filter((path) => !shown.has(`/${path}`)).reverse();
  for (const path of hidden) {
    const at = twins.absent.at(`/${path}`);
    await (listing[path]?.type === "directory" ? callers.absent.rmdir(at) : callers.absent.unlink(at));
  }
  const parents = new Set(hidden.map((path) => `/${path}`.replace(/\/[^/]*$/, "")));
  for (const parent of parents) {
    if (parent !== "" && !shown.has(parent)) continue;
    for (const side of ["there", "absent"] as const) {
      const at = twins[side].at(`${parent}/touched`);
      await callers[side].mkfifo(at);
      await callers[side].unlink(at);
    }
  }
}

/**
 * Nothing that asks what the kernel remembers. And nobody shuts a directory against himself: what an ordinary user's engine
 * cannot look at any more it shows as long as it remembers it.
 */
function independentOfMemory(step: Step): Step | undefined {
  return step.args[3] === "CACHED" ? undefined : keepingOwnRights(step);
}

/** Whoever shuts a directory against himself cannot prepare it for the rules. */
function keepingOwnRights(step: Step): Step {
  if (!["chmod", "fchmod", "mkdir"].includes(step.name)) return step;
  return { ...step, args: step.args.map((argument) => (typeof argument === "number" ? argument | 0o700 : argument)) };
}

/** Closes what the steps of a round have left open, whatever became of it. */
function closingAll(callers: Round["callers"]): AsyncDisposable {
  return {
    async [Symbol.asyncDispose]() {
      for (const caller of [...callers.there, ...callers.absent]) await caller.closeAll();
    },
  };
}

/** A moment that all times of files made from now on are behind: the clock they are taken from is a tick late. */
function moment(): string {
  const now = BigInt(Date.now()) * 1_000_000n;
  const directory = mkdtempSync(join(tmpdir(), "agentfense-clock-"));
  for (let tick = 0; ; tick++) {
    const path = join(directory, String(tick));
    writeFileSync(path, "");
    if (statSync(path, { bigint: true }).mtimeNs >= now) break;
  }
  rmSync(directory, { recursive: true });
  return String(now);
}

function shownStep(step: Step): string {
  const args = step.args.map((argument) => {
    if (typeof argument === "object") return "path" in argument ? argument.path : `slot ${argument.slot}`;
    return typeof argument === "string" && argument.length > 60 ? `${argument.length} bytes` : String(argument);
  });
  const shownArgs = args.join(", ").replaceAll(LONG_NAME, "n…n");
  return `${step.name}(${shownArgs})${step.opens === undefined ? "" : ` as slot ${step.opens}`}`;
}
