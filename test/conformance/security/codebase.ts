import type { Rule } from "@agentfense/permission";
import { fifo, file, link, socket, type Tree } from "../../support/tree.ts";

/** Text that must never come out of a mount, by the reason why not. */
export const CANARY = {
  hidden: "CANARY-HIDDEN-4b1d9c",
  view: "CANARY-VIEW-e07a52",
  outside: "CANARY-OUTSIDE-93f6c8",
} as const;

export const ALL_CANARIES: readonly string[] = Object.values(CANARY);

/** Reading everywhere, writing in /work, listing only in /docs, and hidden things in all of them. */
export const RULES: readonly Rule[] = [
  { pattern: "/**", permission: "read" },
  { pattern: "/work/**", permission: "write" },
  { pattern: "/docs/**", permission: "view" },
  { pattern: "/work/shown.txt", permission: "view" },
  { pattern: "/work/kept.txt", permission: "read" },
  { pattern: "**/.env*", permission: "none", priority: 100 },
  { pattern: "/secrets/**", permission: "none", priority: 100 },
  { pattern: "/secrets/public.key", permission: "read", priority: 200 },
];

/** One hidden entry of every kind. A name that is hidden by the same rule and never there is `ABSENT`. */
export const HIDDEN: Tree = {
  ".env": `password=${CANARY.hidden}\n`,
  ".env.d": { "inner.txt": CANARY.hidden, deeper: { "innermost.txt": CANARY.hidden } },
  ".env.empty": {},
  ".env.exe": file({ content: `#!/bin/sh\necho ${CANARY.hidden}\n`, mode: 0o755 }),
  ".env.link": link("README.md"),
  ".env.dangling": link("nowhere"),
  ".env.fifo": fifo(),
  ".env.sock": socket(),
};

export const HIDDEN_NAMES: readonly string[] = Object.keys(HIDDEN);

export const ABSENT = ".env.absent";

/** The directories that hold the hidden entries: reading, reading at depth, writing, listing only. */
export const PLACES: readonly string[] = ["", "/src", "/src/lib", "/work", "/work/sub", "/docs"];

/** Every hidden path of the codebase, and the one of each directory that is not there in either twin. */
export const HIDDEN_PATHS: readonly string[] = [
  ...PLACES.flatMap((place) => [...HIDDEN_NAMES, ABSENT].map((name) => `${place}/${name}`)),
  "/secrets/key.pem",
  "/secrets/ring",
  "/secrets/absent",
];

/** The codebase of the attacks; `hidden` decides whether the things the rules hide are there. */
export function codebase(options: { hidden: boolean; extra?: Tree }): Tree {
  const secret = options.hidden ? HIDDEN : {};
  return {
    "README.md": "about this\n",
    "run.sh": file({ content: "#!/bin/sh\necho ran\n", mode: 0o755 }),
    ...secret,
    src: {
      "app.ts": "export const app = 1;\n",
      ...secret,
      lib: { "util.ts": "export const util = 2;\n", ...secret },
    },
    work: {
      "notes.txt": "notes\n",
      "shown.txt": `shown ${CANARY.view}\n`,
      "kept.txt": "kept\n",
      ...secret,
      sub: { "inner.txt": "inner\n", ...secret },
    },
    docs: {
      "guide.md": `guide ${CANARY.view}\n`,
      "tool.sh": file({ content: `#!/bin/sh\necho ${CANARY.view}\n`, mode: 0o755 }),
      ...secret,
    },
    secrets: {
      "public.key": "public\n",
      ...(options.hidden ? { "key.pem": CANARY.hidden, ring: { "ring.pem": CANARY.hidden } } : {}),
    },
    ...options.extra,
  };
}
