import type { Rule } from "@agentfense/permission";
import type { ViewEntry } from "../policy/workspace-view.ts";

/** What agents are to do in a project, and the rules that fit. */
export interface Purpose {
  readonly preset: string;
  /** For people who choose. */
  readonly description: string;
  readonly sections: (found: Project) => readonly Section[];
}

/** What was found of a project, as far as purposes ask. */
export interface Project {
  readonly entries: readonly ViewEntry[];
  /** There is a repository, and its settings hold no credentials. */
  readonly hasCleanSettings: boolean;
}

/** Rules with the reason for them. */
export interface Section {
  readonly comment: string;
  readonly rules: readonly Rule[];
}

const RESULTS = new Set(["output", "outputs", "results", "reports", "figures", "plots", "artifacts", "predictions"]);

export const PURPOSES = {
  coding: {
    preset: "development",
    description: "write code and commit it; secrets hidden",
    sections: ({ hasCleanSettings }) =>
      hasCleanSettings
        ? [
            {
              comment: "git's settings hold no credentials: remotes and the like show",
              rules: [{ pattern: "/.git/config", permission: "read", type: "file", priority: 101 }],
            },
          ]
        : [],
  },
  review: {
    preset: "agent-safe",
    description: "read code and its history, run builds and tests, write reports to /output",
    sections: ({ entries }) =>
      entries.some(({ path, type }) => path === "/.git" && type === "directory")
        ? [
            {
              comment: "history, for git log, diff and blame; not git's settings, which may hold credentials",
              rules: [
                { pattern: "/.git/**", permission: "read", priority: 101 },
                { pattern: "/.git/{config,credentials}*", permission: "none", priority: 102 },
              ],
            },
          ]
        : [],
  },
  data: {
    preset: "agent-safe",
    description: "read everything, write results and notebooks; sources and data stay as they are",
    sections: ({ entries }) => {
      const results = entries.filter(
        ({ path, name, type }) => type === "directory" && isTop(path) && RESULTS.has(name),
      );
      const hasNotebooks = entries.some(({ name, type }) => type === "file" && name.endsWith(".ipynb"));
      return [
        {
          comment: "results",
          rules: results.map(({ name }): Rule => ({ pattern: `/${name}/**`, permission: "write" })),
        },
        { comment: "notebooks", rules: hasNotebooks ? [{ pattern: "**/*.ipynb", permission: "write" }] : [] },
      ].filter(({ rules }) => rules.length > 0) as readonly Section[];
    },
  },
} as const satisfies Record<string, Purpose>;

export type PurposeName = keyof typeof PURPOSES;

export function isPurpose(name: string): name is PurposeName {
  return Object.hasOwn(PURPOSES, name);
}

function isTop(path: string): boolean {
  return path.lastIndexOf("/") === 0;
}
