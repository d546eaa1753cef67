import type { BackgroundJob } from "@agentfense/fuse";
import { compileRules } from "@agentfense/permission";
import { discardFrom } from "../changes/discard.ts";
import { deepestFirst } from "../changes/settle.ts";
import { namesOf } from "../filesystem/names.ts";
import type { Workspace } from "../filesystem/workspace.ts";
import type { SettledEntry } from "../sandbox/api.ts";
import type { EngineAnswer, EngineRequest } from "./messages.ts";

/** Paths that are dealt with before other mounts get their turn. */
const SLICE = 128;

const NOTHING_STALE = { inodes: [], entries: [] };

interface Reply {
  answer(answer: EngineAnswer): void;
  refuse(error: unknown): void;
}

/** Requests of the host about a mounted workspace. Long lists are dealt with in slices between the kernel's requests. */
export class EngineCalls {
  readonly #background: (job: BackgroundJob) => void;

  constructor(background: (job: BackgroundJob) => void) {
    this.#background = background;
  }

  /** `workspace` throws when it is no longer mounted. */
  run(request: EngineRequest, workspace: () => Workspace, reply: Reply): void {
    const guarded = (step: () => EngineAnswer | undefined): boolean => {
      try {
        const answer = step();
        if (answer !== undefined) reply.answer(answer);
        return answer !== undefined;
      } catch (error) {
        reply.refuse(error);
        return true;
      }
    };
    let step: (() => EngineAnswer | undefined) | undefined;
    const next = (): EngineAnswer | undefined => {
      step ??= this.#begin(request, workspace());
      workspace();
      return step();
    };
    if (!guarded(next)) this.#background(() => guarded(next));
  }

  /** A function that does some of the work each time and gives the answer when all is done. */
  #begin(request: EngineRequest, workspace: Workspace): () => EngineAnswer | undefined {
    switch (request.kind) {
      case "rules":
        return () => ({ stale: workspace.replaceRules(compileRules(request.rules)) });
      case "codebase":
        return codebaseChanged(workspace, request.paths);
      case "lookAgain":
        return lookAgain(workspace);
      case "settle":
        return settle(workspace, request.entries);
      case "discard":
        return () => discard(workspace, request.paths);
    }
  }
}

function codebaseChanged({ upkeep }: Workspace, paths: readonly string[]): () => EngineAnswer | undefined {
  const refresh = upkeep.refresh();
  const shadowed: string[] = [];
  return inSlices(
    paths,
    (path) => {
      const names = namesOf(path);
      if (names === undefined || names.length === 0) return;
      refresh.path(names, "replaced");
      if (upkeep.shadows(names)) shadowed.push(path);
    },
    () => ({ stale: refresh.finish(), shadowed }),
  );
}

function lookAgain({ upkeep }: Workspace): () => EngineAnswer | undefined {
  const look = upkeep.lookAgain();
  let refresh: ReturnType<typeof upkeep.refresh> | undefined;
  return inSlices(
    look.nodes,
    (node) => {
      const paths = look.changedAt(node);
      if (paths === undefined) return;
      refresh ??= upkeep.refresh();
      for (const names of paths) refresh.path(names, "replaced");
      if (node.isDirectory) refresh.listing(node);
    },
    () => ({ stale: refresh?.finish() ?? NOTHING_STALE }),
  );
}

function settle({ upkeep }: Workspace, entries: readonly SettledEntry[]): () => EngineAnswer | undefined {
  const refresh = upkeep.refresh();
  const settling = upkeep.settling(refresh);
  const stayed: string[] = [];
  return inSlices(
    deepestFirst(entries),
    ({ path, stamp }) => {
      const names = namesOf(path);
      if (names === undefined || !settling.entry(names, stamp)) stayed.push(path);
    },
    () => {
      settling.emptyDirectories();
      return { stale: refresh.finish(), stayed };
    },
  );
}

function discard({ upkeep }: Workspace, paths: readonly string[] | undefined): EngineAnswer {
  if (upkeep.delta === undefined) return { stale: NOTHING_STALE, discarded: { discarded: [], failed: [] } };
  const gone: (readonly string[])[] = [];
  const discarded = discardFrom(upkeep.delta, paths, {
    isWritten: (names) => upkeep.isWritten(names),
    onGone: (names) => gone.push(names),
  });
  const refresh = upkeep.refresh();
  for (const names of gone) {
    upkeep.forgetWhiteouts(names.slice(0, -1));
    refresh.path(names, "replaced");
  }
  upkeep.measureDelta();
  return { stale: refresh.finish(), discarded };
}

function inSlices<T>(
  items: readonly T[],
  each: (item: T) => void,
  finish: () => EngineAnswer,
): () => EngineAnswer | undefined {
  let done = 0;
  return () => {
    const end = Math.min(items.length, done + SLICE);
    for (; done < end; done++) each(items[done]!);
    return done < items.length ? undefined : finish();
  };
}
