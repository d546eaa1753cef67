import { SandboxError, type SandboxErrorCode } from "../backend/errors.ts";

interface Explanation {
  readonly matches: RegExp;
  readonly code: SandboxErrorCode;
  readonly message: string;
  readonly hint?: string;
}

// bwrap says in plain text why it could not make a box; the first row that matches decides.
const EXPLANATIONS: readonly Explanation[] = [
  {
    matches: /Resource temporarily unavailable|Cannot allocate memory|Too many open files|No space left on device/,
    code: "RESOURCES_EXHAUSTED",
    message: "a limit of the sandbox or of the host left no room for the box",
  },
  {
    matches: /Can't find source path .*: Permission denied/,
    code: "RUNTIME_UNAVAILABLE",
    message: "a read-only path is below a directory that the box's user may not enter",
    hint: "let others pass through every directory above it, with: chmod o+x; or give a copy that is elsewhere",
  },
  {
    matches: /No permissions to create|setting up uid map|[Nn]amespace.*(not permitted|denied)|user namespaces/,
    code: "RUNTIME_UNAVAILABLE",
    message: "this host no longer lets bubblewrap make a box",
    hint: "agentfense doctor tells what is missing",
  },
];

/** Why a box could not be made, from what was said meanwhile. */
export function explainFailure(text: string): SandboxError {
  const known = EXPLANATIONS.find((row) => row.matches.test(text));
  const cause = new Error(text.trim() === "" ? "bwrap ended without a word" : text.trim());
  return new SandboxError(known?.code ?? "INTERNAL", known?.message ?? "the box could not be set up", {
    hint: known?.hint,
    cause,
  });
}
