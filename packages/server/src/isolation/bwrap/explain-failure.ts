import type { BoxSpec } from "../backend/backend.ts";
import { IsolationError, type IsolationErrorCode } from "../backend/isolation-error.ts";

interface Explanation {
  readonly code: IsolationErrorCode;
  readonly message: string;
  readonly hint?: string;
}

// bwrap says in plain text why it could not make a box; the first row that matches decides.
const EXPLANATIONS: readonly (Explanation & { readonly matches: RegExp })[] = [
  {
    matches: /Resource temporarily unavailable|Cannot allocate memory|Too many open files|No space left on device/,
    code: "RESOURCES_EXHAUSTED",
    message: "a limit of the sandbox or of the host left no room for the box",
  },
  {
    matches: /No permissions to create|setting up uid map|[Nn]amespace.*(not permitted|denied)|user namespaces/,
    code: "RUNTIME_UNAVAILABLE",
    message: "this host no longer lets bubblewrap make a box",
    hint: "agentfense doctor tells what is missing",
  },
];

type Shown = Pick<BoxSpec, "mounts" | "rootDirectory">;

/** Why a box that shows this could not be made, from what was said meanwhile. */
export function explainFailure(text: string, shown: Shown): IsolationError {
  const unreachable = /Can't find source path (.*): Permission denied/.exec(text)?.[1];
  const known =
    unreachable === undefined
      ? EXPLANATIONS.find((row) => row.matches.test(text))
      : explainUnreachable(unreachable, shown);
  const cause = new Error(text.trim() === "" ? "bwrap ended without a word" : text.trim());
  return new IsolationError(known?.code ?? "INTERNAL", known?.message ?? "the box could not be set up", {
    hint: known?.hint,
    cause,
  });
}

function explainUnreachable(path: string, { mounts, rootDirectory }: Shown): Explanation {
  const isMount = mounts.some(({ source }) => source === path);
  const isRoot = rootDirectory !== undefined && path.startsWith(`${rootDirectory}/`);
  const what = isMount ? "the place where workspaces are mounted" : isRoot ? "the root directory" : "a read-only path";
  const otherwise = isMount ? "have the server mount elsewhere" : "give a copy that is elsewhere";
  return {
    code: "RUNTIME_UNAVAILABLE",
    message: `${what} is below a directory that the box's user may not enter`,
    hint: `let others pass through every directory above it, with: chmod o+x; or ${otherwise}`,
  };
}
