export interface Size {
  readonly lines: number;
  readonly files: number;
}

export interface Growth extends Size {
  /** What users have of it. */
  readonly why: string;
}

export interface Budget {
  /** Becomes smaller when the part does; it never grows. */
  readonly base: Size;
  readonly growth?: readonly Growth[];
}

/**
 * How much of what people write each part may have. Two people have to be able to hold all of it: what makes a part larger
 * than its budget gets a line in `growth`, with its reason.
 */
export const BUDGETS: Readonly<Record<string, Budget>> = {
  "packages/permission/src": { base: { lines: 2_400, files: 21 } },
  "packages/permission/test": { base: { lines: 1_900, files: 13 } },
  "packages/fuse/src": { base: { lines: 3_050, files: 21 } },
  "packages/fuse/test": { base: { lines: 1_950, files: 15 } },
  "packages/protocol/src": { base: { lines: 300, files: 5 } },
  "packages/protocol/test": { base: { lines: 100, files: 2 } },
  "packages/server/src": {
    base: { lines: 51_950, files: 375 },
    growth: [
      { lines: 1_500, files: 7, why: "snapshots and forks of sandboxes" },
      { lines: 1_900, files: 9, why: "code that keeps its names, in contexts" },
      {
        lines: 500,
        files: 3,
        why: "pausing at the expiry, attributes of files, what a change was; applying in batches",
      },
      { lines: 2_100, files: 8, why: "three-way merge with git's results: line pairing, texts, trees, deltas" },
      {
        lines: 1_750,
        files: 17,
        why: "metadata in PostgreSQL: a store, its lease and fence, and a server that outlives the loss of its database",
      },
    ],
  },
  "packages/server/test": {
    base: { lines: 29_300, files: 193 },
    growth: [
      { lines: 300, files: 1, why: "snapshots and forks of sandboxes" },
      {
        lines: 350,
        files: 2,
        why: "JSON over Connect is read exactly; what a change of a file was; pauses at an expiry",
      },
      { lines: 850, files: 5, why: "merges compared with git's" },
      { lines: 750, files: 4, why: "one contract for SQLite and PostgreSQL, on a real one; what a lost answer leaves" },
    ],
  },
  "packages/sdk/src": {
    base: { lines: 12_000, files: 95 },
    growth: [
      { lines: 200, files: 0, why: "snapshots and forks of sandboxes" },
      { lines: 450, files: 3, why: "code that keeps its names, in contexts" },
    ],
  },
  "packages/sdk/test": { base: { lines: 3_950, files: 27 } },
  "packages/doors/src": {
    base: { lines: 5_550, files: 54 },
    growth: [
      { lines: 1_500, files: 8, why: "all calls of E2B's clients: users, metrics, logs, templates, ports" },
      { lines: 250, files: 1, why: "the code interpreter of E2B's clients" },
    ],
  },
  "packages/doors/test": { base: { lines: 1_150, files: 10 } },
  "packages/agent/src": { base: { lines: 14_400, files: 146 } },
  "packages/agent/test": { base: { lines: 9_600, files: 62 } },
  "packages/agentfense/src": {
    base: { lines: 10_200, files: 108 },
    growth: [
      { lines: 120, files: 2, why: "commands for snapshots and forks" },
      { lines: 100, files: 1, why: "policy lint tells what a commit of the agent's would delete; plain errors" },
      { lines: 180, files: 1, why: "agentfense merge" },
    ],
  },
  "packages/agentfense/test": {
    base: { lines: 6_400, files: 58 },
    growth: [
      { lines: 200, files: 1, why: "what a newcomer's machine lacks is a sentence: full disks, absent places" },
      { lines: 150, files: 1, why: "agentfense merge" },
    ],
  },
  "python/src": {
    base: { lines: 13_850, files: 147 },
    growth: [
      { lines: 450, files: 0, why: "snapshots and forks, in both faces" },
      { lines: 700, files: 3, why: "code that keeps its names, in contexts" },
    ],
  },
  "python/tests": {
    base: { lines: 10_950, files: 100 },
    growth: [{ lines: 200, files: 1, why: "code that keeps its names, in contexts" }],
  },
  "python/scripts": { base: { lines: 450, files: 5 } },
  test: {
    base: { lines: 48_500, files: 328 },
    growth: [
      { lines: 400, files: 5, why: "snapshots and forks against a plain directory, and over the API" },
      { lines: 1_300, files: 6, why: "code that keeps its names, in contexts" },
      { lines: 1_400, files: 5, why: "every call of E2B's clients, by clients of several ages" },
      { lines: 400, files: 5, why: "a PostgreSQL for each run of the tests, and servers on it" },
    ],
  },
  bench: { base: { lines: 4_000, files: 48 } },
  examples: {
    base: { lines: 1_300, files: 50 },
    growth: [
      { lines: 10, files: 1, why: "merging two deltas" },
      { lines: 10, files: 1, why: "the settings of a server on PostgreSQL" },
    ],
  },
  scripts: {
    base: { lines: 1_850, files: 31 },
    growth: [{ lines: 60, files: 0, why: "rows of the tables of errors and budgets" }],
  },
};
