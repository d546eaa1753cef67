import type { Level, Levels, Project } from "../../support/project.ts";
import type { Random } from "../model/random.ts";

// Several sandboxes with different rules on one codebase: what they try, and what they may.
//
//   /w/0 … /w/3       files that are only ever written and deleted as a whole, with contents that occur once: who wrote
//                     them last can be told by looking
//   /x/…, /y/…        anything goes: kinds change, names move, directories come and go

export const PLAIN = ["w/0", "w/1", "w/2", "w/3"] as const;
const WILD = ["x/a", "x/b", "x/c", "y/a", "y/b", "y/c", "x", "y"] as const;
const LEVELS: readonly Level[] = ["none", "view", "read", "write"];

export type Mode = "on-exec" | "manual" | "never";

/** An attempt at a file of the first kind: a content, or undefined for its deletion. */
export interface Attempt {
  readonly path: string;
  readonly content: string | undefined;
}

export interface Script {
  readonly command: string;
  /** By the number that the script prints when it succeeded. */
  readonly attempts: readonly Attempt[];
}

/** A sandbox, and what it has done that nobody has synced yet. */
export class Actor {
  readonly mode: Mode;
  readonly id: string;
  levels: Levels;
  /** By path: what it has there, and the codebase's version when it came to have it. */
  readonly pending = new Map<string, { readonly content: string | undefined; readonly since: number }>();

  private constructor(mode: Mode, id: string, levels: Levels) {
    this.mode = mode;
    this.id = id;
    this.levels = levels;
  }

  static async join(project: Project, mode: Mode, random: Random): Promise<Actor> {
    const levels = randomLevels(random);
    const sync = `SYNC_MODE_${mode.toUpperCase().replace("-", "_")}`;
    return new Actor(mode, await project.sandbox(levels, { sync }), levels);
  }

  mayWrite(path: string): boolean {
    return levelOf(this.levels, path) === "write";
  }
}

export function randomLevels(random: Random): Levels {
  const levels: Record<string, Level> = {};
  for (const directory of ["x", "y"]) if (random.chance(50)) levels[`/${directory}/**`] = random.pick(LEVELS);
  for (const path of [...PLAIN, ...WILD.slice(0, 6)]) if (random.chance(35)) levels[`/${path}`] = random.pick(LEVELS);
  return levels;
}

/** A path of its own decides before the directory it is in; what hides a path hides all below it. */
function levelOf(levels: Levels, path: string): Level {
  const own = levels[`/${path}`];
  if (own !== undefined) return own;
  const names = path.split("/");
  for (let length = names.length - 1; length > 0; length--) {
    if (levels[`/${names.slice(0, length).join("/")}`] === "none") return "none";
  }
  return levels[`/${names[0]}/**`] ?? "write";
}

/** A link may lead to a plain file, of which every write is on record. */
function unlessLink(path: string, command: (path: string) => string): string {
  return `[ -L ${path} ] || ${command(path)}`;
}

const WILD_COMMANDS: readonly ((random: Random, text: string) => string)[] = [
  (random, text) => unlessLink(random.pick(WILD), (path) => `echo ${text} >${path}`),
  (random, text) => unlessLink(random.pick(WILD), (path) => `echo ${text} >>${path}`),
  (random) => `rm -rf ${random.pick(WILD)}`,
  (random) => `mkdir -p ${random.pick(WILD)}/deep`,
  (random, text) => `rm -rf ${random.pick(WILD)}; mkdir -p x y; echo ${text} >${random.pick(WILD)}/in`,
  (random) => `mv ${random.pick(WILD)} ${random.pick(WILD)}`,
  (random) => `mv -T ${random.pick(WILD)} ${random.pick(WILD)}`,
  (random) => `ln -s ${random.pick(["../w", "..", "/etc", "a", "b"])} ${random.pick(WILD)}`,
  (random) => `ln -f ${random.pick(WILD)} ${random.pick(WILD)}`,
  (random) => `ln -s ../${random.pick(PLAIN)} ${random.pick(WILD)}`,
  (random) => `cp -a --remove-destination ${random.pick(WILD)} ${random.pick(WILD)}`,
  (random) => `chmod -R ${random.pick(["700", "755", "777", "644"])} ${random.pick(WILD)}`,
  (random) => `touch -h -d 2099-01-01 ${random.pick(WILD)}`,
  (random) => unlessLink(random.pick(WILD), (path) => `: >>${path}`),
  (random, text) => `sed -i s/^/${text}/ ${random.pick(WILD)}`,
];

/** `isThere`: files that can be deleted. */
export function randomScript(random: Random, nextText: () => string, isThere: (path: string) => boolean): Script {
  const attempts: Attempt[] = [];
  const lines: string[] = [];
  for (let count = random.between(1, 4); count > 0; count--) {
    if (random.chance(50)) {
      lines.push(random.pick(WILD_COMMANDS)(random, nextText()));
      continue;
    }
    const path = random.pick(PLAIN);
    const isDeletion = random.chance(25) && isThere(path) && !attempts.some((attempt) => attempt.path === path);
    const content = isDeletion ? undefined : nextText();
    const attempt = content === undefined ? `rm ${path}` : `echo ${content} >${path}`;
    lines.push(`${attempt} && echo "ok ${attempts.length}"`);
    attempts.push({ path, content });
  }
  return { command: lines.map((line) => `{ ${line}; } 2>/dev/null`).join("\n"), attempts };
}

/** What a script did, by what it printed, in order. */
export function succeeded({ attempts }: Script, stdout: string): readonly Attempt[] {
  return [...stdout.matchAll(/^ok (\d+)$/gm)].map(([, number]) => attempts[Number(number)]!);
}

/** The last word on each path. */
export function lastWords(attempts: readonly Attempt[]): readonly Attempt[] {
  return [...new Map(attempts.map((attempt) => [attempt.path, attempt])).values()];
}
