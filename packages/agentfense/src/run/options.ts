import { option, type ValuesOf } from "../option.ts";
import { SECRETS } from "../secret-options.ts";
import {
  ALL_CHANGES,
  ALLOW,
  environment,
  IMAGE,
  LIMITS,
  NETWORK,
  PULL,
  RULES,
  RUNTIME,
  WORKDIR,
} from "../shared-options.ts";

export const TOOLCHAINS = option({
  name: "toolchains",
  value: "WHICH",
  words: ["auto", "off"],
  about: `bwrap: auto (default) shows, read-only, the programs that your PATH finds outside of /usr, with what
they need: nvm, pyenv, uv, cargo, Homebrew …; off shows none`,
});

export const HOME = option({
  name: "home",
  value: "DIR",
  kind: "directory",
  about: `keep the home (~) in this directory of yours, made if absent, for one sandbox at a time: logins, caches
and what is installed for the user. Without it the home goes where the changes go`,
});

export const APPLY = option({
  name: "apply",
  value: "WHEN",
  alone: "success",
  words: ["success", "always"],
  about: `write them back to DIR at the end: when all went well (default), or always
What cannot be written back is kept, and it is said where.`,
});

export const HOLD_EXECUTABLES = option({
  name: "hold-executables",
  about: "of that, write back nothing that ! marks in the list: what this machine may run or trust unasked",
});

const LEARN = option({
  name: "learn",
  about: `let it reach every public host at the ports 443, 80, 22 and 9418 and those of --allow, and print at the
end which it reached, as --allow and for the project's policy. For a command that you trust: what it
can read it can send anywhere`,
});

/** What the box is made of. */
export const BOX = [
  RUNTIME,
  IMAGE,
  option({ name: "oci-runtime", value: "NAME", about: "docker: another runtime the engine knows, such as runsc" }),
  PULL,
  option({
    name: "root",
    value: "DIR",
    kind: "directory",
    about: "bwrap: a root directory of your own instead of this machine's programs",
  }),
  option({
    name: "read-only-path",
    value: "PATH",
    kind: "file",
    isRepeated: true,
    about: "bwrap: show this too, at the same path, read-only (may be repeated)",
  }),
  TOOLCHAINS,
  NETWORK,
  ...ALLOW,
  ...SECRETS,
  environment("a variable for the command"),
  WORKDIR,
  HOME,
] as const;

/** The options of `run`, `shell` and `agent` alike. */
export const SANDBOX_OPTIONS = {
  Rules: RULES,
  Sandbox: [...BOX, LEARN],
  Limits: LIMITS,
  Changes: [
    option({
      name: "delta",
      value: "DIR",
      kind: "directory",
      about: "keep them here (made if absent, continued if it holds some)",
    }),
    APPLY,
    HOLD_EXECUTABLES,
    option({ ...ALL_CHANGES, about: `${ALL_CHANGES.about}\nWithout any of these they are listed and thrown away.` }),
  ],
} as const;

/** What a command line says of the sandbox that it wants. */
export type SandboxValues = ValuesOf<readonly (typeof SANDBOX_OPTIONS)[keyof typeof SANDBOX_OPTIONS][number][]>;

export const EXPLAIN = option({
  name: "explain",
  about: "run nothing; say what the sandbox would show, find in PATH and leave out",
});
