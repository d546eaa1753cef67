import { compileRules, LEVEL, type Level, type LevelValue, type Rule } from "@agentfense/permission";
import { counted } from "../wording.ts";
import { isForeign } from "./content-reader.ts";

/** What a command did in a workspace. */
export interface Observed {
  /** The highest level that each path took. */
  readonly accesses: ReadonlyMap<string, Exclude<Level, "none">>;
  /** The files that were there before, and those that are there now. */
  readonly files: ReadonlySet<string>;
  /** The directories that the command made, and left. */
  readonly madeDirectories: ReadonlySet<string>;
  /** Why a path looks like a secret; undefined: it does not. */
  readonly secretAt: (path: string) => string | undefined;
}

export interface ProposedRule extends Rule {
  readonly reason: string;
}

export interface Proposal {
  readonly rules: readonly ProposedRule[];
  /** What was read or written and is not allowed, because it looks like a secret. */
  readonly secrets: readonly { readonly path: string; readonly level: Level; readonly reason: string }[];
}

/** From so many paths of one directory on, a pattern for all of it is easier to read. */
const MANY = 5;
/** From so many on it is, whatever else is in it. */
const VERY_MANY = 50;

const DONE = { write: "written", read: "read", view: "looked at" } as const;
const NUMBERS = { write: LEVEL.write, read: LEVEL.read, view: LEVEL.view } as const;

/**
 * The least rules under which the same command would have worked, as far as a pattern for many paths of a directory is no
 * more than they are. What looks like a secret is left out, and hidden where a pattern would show it.
 */
export function proposeRules(observed: Observed): Proposal {
  const { accesses, secretAt } = observed;
  const secrets = [...accesses].flatMap(([path, level]) => {
    const reason = level === "view" ? undefined : secretAt(path);
    return reason === undefined ? [] : [{ path, level, reason }];
  });
  const left = new Set(secrets.map(({ path }) => path));
  const rules: ProposedRule[] = [];
  for (const level of ["write", "read", "view"] as const) {
    const policy = compileRules(rules);
    // A directory on the way to something that is allowed is shown without a rule.
    const passages = countBelow(rules.map(({ pattern }) => pattern));
    const needs = [...accesses].flatMap(([path, needed]) => {
      const isNeeded = needed === level && !left.has(path) && path !== "/" && secretAt(path) === undefined;
      const isShown = policy.decide(path).level >= NUMBERS[level] || (level === "view" && passages.has(path));
      return isNeeded && !isShown ? [path] : [];
    });
    rules.push(...rulesFor(level, needs, observed));
  }
  return { rules: [...rules, ...hidden(rules, observed)], secrets };
}

function rulesFor(level: keyof typeof DONE, paths: readonly string[], observed: Observed): ProposedRule[] {
  const places = new Map<string, string[]>();
  const add = (pattern: string, path: string): void => {
    places.set(pattern, [...(places.get(pattern) ?? []), path]);
  };
  const made = level === "write" ? observed.madeDirectories : new Set<string>();
  const counts = countBelow(paths);
  const totals = countBelow([...observed.files]);
  for (const path of paths.toSorted()) add(patternFor(path, { level, made, counts, totals, observed }), path);
  return [...places].map(([pattern, same]) => {
    const [first = ""] = same;
    const reason =
      same.length === 1 && first === pattern
        ? DONE[level]
        : `${counted(same.length, "path")} ${DONE[level]}, such as ${first}`;
    return { pattern, permission: level, reason };
  });
}

interface Folding {
  readonly level: keyof typeof DONE;
  readonly made: ReadonlySet<string>;
  readonly counts: ReadonlyMap<string, number>;
  readonly totals: ReadonlyMap<string, number>;
  readonly observed: Observed;
}

/** The highest directory that stands for the path together with many others, or the path itself. */
function patternFor(path: string, { level, made, counts, totals, observed }: Folding): string {
  const names = path.split("/").slice(1);
  for (let depth = 1; depth < names.length; depth++) {
    const directory = `/${names.slice(0, depth).join("/")}`;
    if (made.has(directory)) return `${literal(directory)}/**`;
    const count = counts.get(directory) ?? 0;
    const isMost = count >= MANY && count * 2 >= (totals.get(directory) ?? 0);
    const isOthers = level !== "write" && isForeign(names[depth - 1]!);
    if (isMost || isOthers || count >= VERY_MANY) return `${literal(directory)}/**`;
  }
  if (made.has(path)) return `${literal(path)}/**`;
  const directory = path.slice(0, path.lastIndexOf("/"));
  const name = names.at(-1)!;
  // A name that came and went has something random in it, and is another one the next time.
  const isPassing = level === "write" && !observed.files.has(path);
  return `${literal(directory)}/${isPassing ? literal(name).replace(/[0-9a-f]{8,}|\d+/gi, "*") : literal(name)}`;
}

/** How many of the paths are below each directory. */
function countBelow(paths: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const path of paths) {
    for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) {
      const directory = path.slice(0, at);
      counts.set(directory, (counts.get(directory) ?? 0) + 1);
    }
  }
  return counts;
}

/** Secrets that the patterns would show, whether the command wanted them or not. */
function hidden(rules: readonly Rule[], { files, secretAt }: Observed): ProposedRule[] {
  const policy = compileRules(rules);
  return [...files].toSorted().flatMap((path): ProposedRule[] => {
    const level: LevelValue = policy.decide(path).level;
    const reason = level >= LEVEL.read ? secretAt(path) : undefined;
    return reason === undefined
      ? []
      : [
          {
            pattern: literal(path),
            permission: "none",
            priority: 100,
            reason: `${reason}; a pattern above would show it`,
          },
        ];
  });
}

/** A path as a pattern that means it alone. */
function literal(path: string): string {
  return path.replace(/[*?[\]{}\\!]/g, "?");
}
