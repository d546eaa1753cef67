import type { BackgroundJob } from "@agentfense/fuse";
import { compileRules } from "@agentfense/permission";
import { discardFrom } from "../changes/discard.ts";
import { deepestFirst } from "../changes/settle.ts";
import { namesOf } from "../filesystem/names.ts";
import type { SettledEntry } from "../filesystem/settlement.ts";
import { turn, type Walk, walkInBackground } from "../filesystem/walks.ts";
import type { Workspace } from "../filesystem/workspace.ts";
import type { EngineAnswer, EngineRequest } from "./messages.ts";

const NOTHING_STALE = { inodes: [], entries: [] };

interface Reply {
  answer(answer: EngineAnswer): void;
  refuse(error: unknown): void;
}

/** What the host asks about one mounted workspace: one thing after the other, and each in turns with the kernel's requests. */
export class EngineCalls {
  readonly #background: (job: BackgroundJob) => void;
  readonly #queue: { readonly walk: Walk<EngineAnswer>; readonly reply: Reply }[] = [];

  constructor(background: (job: BackgroundJob) => void) {
    this.#background = background;
  }

  run(request: EngineRequest, workspace: Workspace, reply: Reply): void {
    this.#queue.push({ walk: carryOut(request, workspace), reply });
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

function carryOut(request: EngineRequest, workspace: Workspace): Walk<EngineAnswer> {
  switch (request.kind) {
    case "rules":
      return replaceRules(workspace, request);
    case "codebase":
      return codebaseChanged(workspace, request.paths);
    case "lookAgain":
      return lookAgain(workspace);
    case "settle":
      return settle(workspace, request.entries);
    case "discard":
      return discard(workspace, request.paths);
  }
}

function* replaceRules(workspace: Workspace, { rules }: Extract<EngineRequest, { kind: "rules" }>): Walk<EngineAnswer> {
  return { stale: yield* workspace.replaceRules(compileRules(rules)) };
}

function* codebaseChanged({ upkeep }: Workspace, paths: readonly string[]): Walk<EngineAnswer> {
  const refresh = upkeep.refresh();
  const shadowed: string[] = [];
  for (const path of paths) {
    const names = namesOf(path);
    if (names === undefined || names.length === 0) continue;
    yield* refresh.path(names, "replaced");
    if (upkeep.shadows(names)) shadowed.push(path);
  }
  return { stale: yield* refresh.finish(), shadowed };
}

function* lookAgain({ upkeep }: Workspace): Walk<EngineAnswer> {
  const refresh = upkeep.refresh();
  yield* upkeep.lookAgain(refresh);
  return { stale: yield* refresh.finish() };
}

function* settle({ upkeep }: Workspace, entries: readonly SettledEntry[]): Walk<EngineAnswer> {
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
  return { stale: yield* refresh.finish(), stayed };
}

function* discard({ upkeep }: Workspace, paths: readonly string[] | undefined): Walk<EngineAnswer> {
  const { delta } = upkeep;
  if (delta === undefined) return { stale: NOTHING_STALE, discarded: { discarded: [], failed: [] } };
  const refresh = upkeep.refresh();
  const discarded = yield* discardFrom(delta, paths, {
    isWritten: (names) => upkeep.isWritten(names),
    *onGone(names) {
      upkeep.forgetWhiteouts(names.slice(0, -1));
      yield* refresh.path(names, "replaced");
    },
    onRemoved: (stat) => upkeep.removedFromDelta(stat, refresh),
  });
  return { stale: yield* refresh.finish(), discarded };
}
