import { afterAll, afterEach, beforeAll, describe } from "vitest";
import { type As, identityOf, reasonAgainst } from "./identity.ts";
import { Probe } from "./probe.ts";
import { openWorkspace, type TestWorkspace, type WorkspaceOptions } from "./workspace.ts";

/** Who serves the mount and who attacks it. */
interface Situation {
  readonly name: string;
  readonly daemon: As;
  readonly agent: As;
}

const SITUATIONS: readonly Situation[] = [
  { name: "root", daemon: "root", agent: "root" },
  { name: "an ordinary user", daemon: "user", agent: "user" },
  { name: "an ordinary user on a mount of root", daemon: "root", agent: "user" },
];

/** What a suite gets: one probe for all its tests, and workspaces that end with their test. */
export interface Arena {
  readonly agent: As;
  readonly probe: Probe;
  open(options: Omit<WorkspaceOptions, "as">): Promise<TestWorkspace>;
  /** A further agent process, ended with the test. */
  anotherProbe(): Promise<Probe>;
}

/** Runs a suite in every situation; one that this machine cannot provide is skipped and says why. */
export function describeAttack(title: string, suite: (arena: Arena) => void): void {
  for (const situation of SITUATIONS) {
    const reason = reasonAgainst(situation.daemon) ?? reasonAgainst(situation.agent);
    const name = `${title}, as ${situation.name}${reason === undefined ? "" : ` (skipped: ${reason})`}`;
    describe.skipIf(reason !== undefined)(name, () => suite(makeArena(situation)));
  }
}

function makeArena(situation: Situation): Arena {
  let probe: Probe | undefined;
  let opened = new AsyncDisposableStack();
  beforeAll(async () => {
    probe = await Probe.start(situation.agent);
  });
  afterEach(async () => {
    const ending = opened;
    opened = new AsyncDisposableStack();
    await ending.disposeAsync();
  });
  afterAll(async () => {
    await probe?.[Symbol.asyncDispose]();
  });
  return {
    agent: situation.agent,
    get probe() {
      if (probe === undefined) throw new Error("the probe starts before the first test");
      return probe;
    },
    async open(options) {
      const owner = situation.daemon === situation.agent ? {} : { owner: identityOf(situation.agent) };
      return opened.use(await openWorkspace({ ...owner, ...options, as: situation.daemon }));
    },
    async anotherProbe() {
      return opened.use(await Probe.start(situation.agent));
    },
  };
}
