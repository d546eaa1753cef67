import { Errno, syscalls } from "@agentfense/fuse";
import { LEVEL, type Scope } from "@agentfense/permission";
import { DirentType } from "./directory-reader.ts";
import { exceedsBounds, type PathExtent, textOf } from "./names.ts";
import type { Node } from "./node.ts";
import type { Tree } from "./tree.ts";
import { turn, type Walk, type Walks } from "./walks.ts";

const { FileType } = syscalls;

/** A directory that is only in the delta and is to move: what holds where it is, and where it comes to. */
export interface Move {
  readonly directory: Node;
  readonly from: { readonly scope: Scope; readonly extent: PathExtent };
  readonly to: { readonly scope: Scope; readonly extent: PathExtent };
}

interface Exposed {
  readonly directory: Node;
  readonly name: string;
}

interface Level {
  readonly directory: Node;
  readonly from: Scope;
  readonly to: Scope;
  /** Of its new path. */
  readonly extent: PathExtent;
  /** Directories in it that are still to be looked into. */
  readonly below: string[];
}

/** Takes an entry that is hidden here, and would not be there, out of the way. 0 or an errno. */
type PutAside = (directory: Node, name: string) => number;

/** What nobody moves directories during. */
const COUNT = "count of hidden names";

/**
 * Whether directories may move with all that is in them: every entry must be the sandbox's to write, where it is and where it
 * comes to, and no path may become too long. What is hidden has no say: the answer is the same without it. Mostly the answer is
 * known without looking: what the sandbox made under the rules in force can be written where it is, and so it can at a place
 * that the same rules are in force below. Otherwise the content is walked, and until that is over nothing comes into it.
 */
export class Moves {
  readonly #tree: Tree;
  readonly #walks: Walks;
  /** Directories that nothing comes into, with what to wait for. */
  readonly #held = new Map<Node, string>();
  readonly #scopeNumbers = new WeakMap<Scope, number>();
  #scopes = 0;

  constructor(tree: Tree, walks: Walks) {
    this.#tree = tree;
    this.#walks = walks;
  }

  /**
   * 0 when all of them may move, or an errno. The last thing that a request may have to wait for, and that may refuse it: then
   * what is hidden, and must stay so, has been put aside.
   */
  prepare(moves: readonly Move[], putAside: PutAside): number {
    if (moves.length > 0) this.#walks.wait(COUNT);
    const unsure = moves.filter((move) => !this.#isSafe(move) || exceedsBounds(this.#reach(move)));
    const key = `move ${unsure.map((move) => this.#describe(move)).join(" ")}`;
    const errno = unsure.length === 0 ? 0 : this.#walks.result(key, () => this.#walk(key, unsure, putAside));
    if (errno !== 0) return errno;
    for (const move of moves) if (!unsure.includes(move)) this.#tree.noteExtent(this.#reach(move));
    return 0;
  }

  /** Has the request wait that is about to make an entry in a directory which may be about to move. */
  wait(parent: Node): void {
    if (this.#held.size === 0) return;
    for (let each: Node | undefined = parent; each !== undefined; each = each.parent) {
      const key = this.#held.get(each);
      if (key !== undefined) this.#walks.wait(key);
    }
  }

  /** Until this is disposed of no directory moves. */
  holdAll(): Disposable {
    return this.#walks.hold(COUNT);
  }

  /** Until this is disposed of nothing comes into a directory. */
  hold(directory: Node): Disposable {
    const key = `hold ${directory.id}`;
    const hold = this.#walks.hold(key);
    this.#held.set(directory, key);
    return {
      [Symbol.dispose]: () => {
        this.#held.delete(directory);
        hold[Symbol.dispose]();
      },
    };
  }

  #isSafe({ from, to }: Move): boolean {
    if (to.scope.uniform && from.scope.uniform) return true;
    return this.#tree.isOwnWork && (to.scope.uniform || from.scope === to.scope);
  }

  /** How far the paths in it can reach afterwards. */
  #reach({ from, to }: Move): PathExtent {
    const { levels, bytes } = this.#tree.mostBelow(from.extent);
    const isNoLonger = to.extent.levels <= from.extent.levels && to.extent.bytes <= from.extent.bytes;
    return isNoLonger ? to.extent : { levels: to.extent.levels + levels, bytes: to.extent.bytes + bytes };
  }

  // What a walk finds out depends on all of this.
  #describe({ directory, from, to }: Move): string {
    const places = [from, to].map(({ scope, extent }) => [this.#numberOf(scope), extent.levels, extent.bytes].join());
    return [directory.id, ...places].join(":");
  }

  #numberOf(scope: Scope): number {
    const known = this.#scopeNumbers.get(scope);
    if (known !== undefined) return known;
    this.#scopes += 1;
    this.#scopeNumbers.set(scope, this.#scopes);
    return this.#scopes;
  }

  *#walk(key: string, moves: readonly Move[], putAside: PutAside): Walk<number> {
    for (const { directory } of moves) this.#held.set(directory, key);
    const exposed: Exposed[] = [];
    try {
      for (const move of moves) {
        const errno = yield* this.#walkOne(move, exposed);
        if (errno !== 0) return errno;
      }
      for (const { directory, name } of exposed) {
        turn.entries += 1;
        yield;
        const errno = putAside(directory, name);
        if (errno !== 0) return errno;
      }
      return 0;
    } finally {
      for (const { directory } of moves) this.#held.delete(directory);
      for (const { directory } of exposed) this.#leave(directory);
    }
  }

  *#walkOne({ directory, from, to }: Move, exposed: Exposed[]): Walk<number> {
    const path: Level[] = [];
    try {
      let next: Omit<Level, "below"> | undefined = {
        directory,
        from: from.scope,
        to: to.scope,
        extent: to.extent,
      };
      while (next !== undefined) {
        const level: Level = { ...next, below: [] };
        level.directory.pins += 1;
        path.push(level);
        const errno = yield* this.#look(level, exposed);
        if (errno !== 0) return errno;
        yield;
        next = this.#nextBelow(path);
      }
      return 0;
    } finally {
      for (const level of path) this.#leave(level.directory);
    }
  }

  *#look({ directory, from, to, extent, below }: Level, exposed: Exposed[]): Walk<number> {
    let errno = 0;
    const hidden: string[] = [];
    const code = yield* this.#tree.walkNames(directory, (name, type) => {
      const text = textOf(name);
      const [here, there] = [from.child(text), to.child(text)];
      if (here.level === LEVEL.none) {
        if (here.mayShowBelow || exposes(here, there)) hidden.push(name);
        return false;
      }
      const reach = { levels: extent.levels + 1, bytes: extent.bytes + name.length + 1 };
      if (here.level < LEVEL.write) errno = Errno.EXDEV;
      else if (there.level < LEVEL.write) errno = Errno.EACCES;
      else if (exceedsBounds(reach)) errno = Errno.ENAMETOOLONG;
      else this.#tree.noteExtent(reach);
      if (type === DirentType.DIRECTORY || type === DirentType.UNKNOWN) below.push(name);
      return errno !== 0;
    });
    if (code < 0 || errno !== 0) return code < 0 ? -code : errno;
    for (const name of hidden) {
      turn.entries += 1;
      yield;
      const shown = yield* this.#tree.walkVisible(directory, name);
      if (typeof shown !== "number") {
        this.#tree.release(shown);
        return Errno.EXDEV;
      }
      if (!exposes(from.child(textOf(name)), to.child(textOf(name)))) continue;
      directory.pins += 1;
      exposed.push({ directory, name });
    }
    return 0;
  }

  #nextBelow(path: Level[]): Omit<Level, "below"> | undefined {
    for (let last = path.at(-1); last !== undefined; last = path.at(-1)) {
      const name = last.below.pop();
      if (name === undefined) {
        this.#leave(last.directory);
        path.pop();
      } else if (this.#tree.resolve(last.directory, name) === 0 && this.#tree.stat.type === FileType.DIRECTORY) {
        const text = textOf(name);
        const { levels, bytes } = last.extent;
        return {
          directory: this.#tree.bind(last.directory, name),
          from: last.from.child(text),
          to: last.to.child(text),
          extent: { levels: levels + 1, bytes: bytes + name.length + 1 },
        };
      }
    }
    return undefined;
  }

  #leave(directory: Node): void {
    directory.pins -= 1;
    this.#tree.release(directory);
  }
}

/** What is hidden here might not be there. */
function exposes(here: Scope, there: Scope): boolean {
  return here !== there && (there.level > LEVEL.none || there.mayShowBelow);
}
