import type { BackgroundJob } from "@agentfense/fuse";
import { compileRules, type Rule } from "@agentfense/permission";
import { type DiscardReport, discardFrom } from "../changes/discard.ts";
import { deepestFirst } from "../changes/settle.ts";
import type { FreezeSpec, Frozen } from "../filesystem/freezing.ts";
import { namesOf } from "../filesystem/names.ts";
import type { StaleReport } from "../filesystem/refresh.ts";
import type { SettledEntry } from "../filesystem/settlement.ts";
import { turn, type Walk, walkInBackground } from "../filesystem/walks.ts";
import { Workspace } from "../filesystem/workspace.ts";

export interface CallAnswer<Result> {
  /** What the kernel has to forget before the result is told. */
  readonly stale: StaleReport;
  readonly result: Result;
}

type Answering<Result> = Walk<CallAnswer<Result>>;

export type CallName = keyof typeof CALLS;
export type CallInput<Name extends CallName> = Parameters<(typeof CALLS)[Name]>[1];
export type CallResult<Name extends CallName> =
  ReturnType<(typeof CALLS)[Name]> extends Answering<infer Result> ? Result : never;

interface Reply {
  answer(answer: CallAnswer<unknown>): void;
  refuse(error: unknown): void;
}

/** What the host asks about one mounted workspace: one thing after the other, and each in turns with the kernel's requests. */
export class MountCalls {
  readonly #background: (job: BackgroundJob) => void;
  readonly #queue: { readonly walk: Answering<unknown>; readonly reply: Reply }[] = [];

  constructor(background: (job: BackgroundJob) => void) {
    this.#background = background;
  }

  /** `all`: the workspaces of the mount, the asked one among them. */
  run(name: CallName, input: unknown, workspace: Workspace, all: readonly Workspace[], reply: Reply): void {
    // The two ends of the thread are typed by the same table: the input is the one that belongs to the name.
    const begin = CALLS[name] as (
      workspace: Workspace,
      input: unknown,
      all: readonly Workspace[],
    ) => Answering<unknown>;
    this.#queue.push({ walk: begin(workspace, input, all), reply });
    if (this.#queue.length === 1) this.#next();
  }

  /** The workspace is gone. */
  close(): void {
    for (const { walk, reply } of this.#queue.splice(0)) {
      walk.return(undefined as never);
      reply.refuse(new Error("the workspace is not mounted"));
    }
  }

  // The first turn is taken at once: most of what is asked is over then.
  #next(): void {
    const first = this.#queue[0];
    if (first === undefined) return;
    const job = walkInBackground(
      first.walk,
      (answer) => this.#done(() => first.reply.answer(answer)),
      (error) => this.#done(() => first.reply.refuse(error)),
    );
    const isGone = (): boolean => this.#queue[0] !== first;
    if (!job()) this.#background(() => isGone() || job());
  }

  #done(reply: () => void): void {
    this.#queue.shift();
    reply();
    this.#next();
  }
}

/** What can be asked of a mounted workspace. */
const CALLS = {
  *rules(workspace: Workspace, rules: readonly Rule[]): Answering<void> {
    return { stale: yield* workspace.replaceRules(compileRules(rules)), result: undefined };
  },

  /** These paths of the codebase were changed; gives those that the delta has versions of its own of. */
  *codebase({ upkeep }: Workspace, paths: readonly string[]): Answering<readonly string[]> {
    const refresh = upkeep.refresh();
    const shadowed: string[] = [];
    for (const path of paths) {
      const names = namesOf(path);
      if (names === undefined || names.length === 0) continue;
      yield* refresh.path(names, "replaced");
      if (upkeep.shadows(names)) shadowed.push(path);
    }
    return { stale: yield* refresh.finish(), result: shadowed };
  },

  /** Others may have changed any. */
  *lookAgain({ upkeep }: Workspace, _input: undefined): Answering<void> {
    const refresh = upkeep.refresh();
    yield* upkeep.lookAgain(refresh);
    return { stale: yield* refresh.finish(), result: undefined };
  },

  /** Gives the paths that did not settle. */
  *settle({ upkeep }: Workspace, entries: readonly SettledEntry[]): Answering<readonly string[]> {
    const refresh = upkeep.refresh();
    const settling = upkeep.settling(refresh);
    const stayed: string[] = [];
    for (const { path, stamp } of yield* deepestFirst(entries)) {
      turn.entries += 1;
      yield;
      const names = namesOf(path);
      if (names === undefined || !(yield* settling.entry(names, stamp))) stayed.push(path);
    }
    yield* settling.emptyDirectories();
    return { stale: yield* refresh.finish(), result: stayed };
  },

  *discard({ upkeep }: Workspace, paths: readonly string[] | undefined): Answering<DiscardReport> {
    const { delta } = upkeep;
    if (delta === undefined) return { stale: { inodes: [], entries: [] }, result: { discarded: [], failed: [] } };
    const refresh = upkeep.refresh();
    const result = yield* discardFrom(delta, paths, {
      isWritten: (names) => upkeep.isWritten(names),
      *onGone(names) {
        upkeep.forgetWhiteouts(names.slice(0, -1));
        yield* refresh.path(names, "replaced");
      },
      onRemoved: (stat) => upkeep.removedFromDelta(stat, refresh),
    });
    return { stale: yield* refresh.finish(), result };
  },

  *freeze(_workspace: Workspace, spec: FreezeSpec, all: readonly Workspace[]): Answering<Frozen> {
    return { stale: { inodes: [], entries: [] }, result: yield* Workspace.freeze(all, spec) };
  },
} as const;
