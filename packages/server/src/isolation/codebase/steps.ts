import { check, Errno, SystemError, syscalls } from "@agentfense/fuse";
import { settleDirectories, settleEverything } from "../changes/durability.ts";
import { closing } from "../filesystem/descriptors.ts";
import { bytesOf } from "../filesystem/names.ts";
import { type CodebasePlace, diskMode, openOrMakePart, openPart, splitPath } from "./layout.ts";

const { AT_REMOVEDIR, Open, Stat } = syscalls;

/**
 * What the disk does for a change of a codebase, in this order. Paths are the codebase's. Each can be done again after any
 * part of the list was done, with the same outcome: a journal is carried out from the start after a crash.
 */
export type Step =
  /** The file gets a second name, under which its content stays: kept/<version>/<as>. */
  | { readonly do: "keep"; readonly path: string; readonly as: string }
  /** The file goes there altogether. */
  | { readonly do: "retire"; readonly path: string; readonly as: string }
  /** A symbolic link goes. */
  | { readonly do: "unlink"; readonly path: string }
  | { readonly do: "removeDirectory"; readonly path: string }
  | { readonly do: "makeDirectory"; readonly path: string; readonly mode: number }
  | { readonly do: "setMode"; readonly path: string; readonly mode: number }
  /** A staged file takes the path; a file or link that was there is replaced at once. */
  | { readonly do: "place"; readonly path: string; readonly staged: string; readonly mode: number }
  /** A symbolic link takes the path likewise. */
  | { readonly do: "link"; readonly path: string; readonly target: string }
  | { readonly do: "move"; readonly path: string; readonly to: string };

export interface StepsInput extends CodebasePlace {
  readonly version: number;
  readonly upload: string;
  readonly steps: readonly Step[];
}

/** So many steps before other jobs of the thread get their turn. */
const STEPS_A_TURN = 2000;

export interface StepsOutcome {
  /** Something is left in the staging directory; otherwise it is gone too. */
  readonly hasLeftovers: boolean;
  readonly touched: Touched;
}

/** Where names changed, for `settleSteps`: directories of the tree, and of what this version replaced; undefined: too many to say. */
export type Touched = { readonly inTree: readonly string[]; readonly kept: string | undefined } | undefined;

/** Carries them out, for everybody who looks; whether the disk has it yet is another matter. */
export async function runSteps(input: StepsInput): Promise<StepsOutcome> {
  const { version, upload, steps, ...place } = input;
  using runner = new StepRunner(place, version, upload);
  let done = 0;
  for (const step of steps) {
    runner.carryOut(step);
    if (++done % STEPS_A_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  const staging = openPart(place, "staging");
  const code = syscalls.unlinkat(staging, upload, AT_REMOVEDIR);
  syscalls.close(staging);
  return { hasLeftovers: code < 0, touched: runner.touched };
}

export interface SettleStepsInput extends CodebasePlace {
  readonly touched: Touched;
}

/** Waits until what steps did to names is on the disk. */
export function settleSteps({ touched, ...place }: SettleStepsInput): void {
  using opened = new DisposableStack();
  const open = (fd: number): number => {
    opened.use(closing(fd));
    return fd;
  };
  const tree = open(openPart(place, "tree"));
  if (touched === undefined) {
    settleEverything(tree);
    return;
  }
  const inTree = touched.inTree.map((directory) => open(check("open", openDirectory(tree, directory))));
  const kept = touched.kept === undefined ? [] : [open(openPart(place, `kept/${touched.kept}`))];
  settleDirectories([...inTree, ...kept]);
}

function openDirectory(tree: number, directory: string): number {
  return syscalls.openBeneath(tree, directory === "" ? "." : bytesOf(directory), Open.RDONLY | Open.DIRECTORY);
}

/** Longer lists of open directories are not kept: a codebase may have very many. */
const OPEN_DIRECTORIES = 128;

/** A link under construction; one that a first attempt left may have another target. */
const LINK_NAME = "link";

class StepRunner implements Disposable {
  readonly #place: CodebasePlace;
  readonly #tree: number;
  readonly #staging: number;
  readonly #version: number;
  #kept = -1;
  #strays = 0;
  #hasClosed = false;
  readonly #parents = new Map<string, number>();

  constructor(place: CodebasePlace, version: number, upload: string) {
    this.#place = place;
    this.#version = version;
    this.#tree = openPart(place, "tree");
    this.#staging = openOrMakePart(place, "staging", upload);
  }

  carryOut(step: Step): void {
    this.#closeSome();
    const [directory, last] = splitPath(step.path);
    const parent = this.#parent(directory);
    if (parent < 0) this.#withoutParent(step, -parent);
    else this.#carryOut(step, parent, bytesOf(last));
  }

  #carryOut(step: Step, parent: number, name: string): void {
    switch (step.do) {
      case "keep":
        allow("keep", syscalls.linkat(parent, name, this.#keptDirectory(), step.as), Errno.EEXIST, Errno.ENOENT);
        break;
      case "retire":
        this.#retire(parent, name, step.as);
        break;
      case "unlink":
        allow("unlink", syscalls.unlinkat(parent, name), Errno.ENOENT, Errno.EISDIR);
        break;
      case "removeDirectory":
        this.#removeDirectory(parent, name, step.path);
        break;
      case "makeDirectory":
        allow("mkdir", syscalls.mkdirat(parent, name, 0o700), Errno.EEXIST);
        allow("chmod", syscalls.chmodat(parent, name, diskMode("directory", step.mode)));
        break;
      case "setMode":
        allow("chmod", syscalls.chmodat(parent, name, diskMode("directory", step.mode)));
        break;
      case "place":
        this.#putInPlace(parent, name, step.staged, diskMode("file", step.mode));
        break;
      case "link":
        syscalls.unlinkat(this.#staging, LINK_NAME);
        allow("symlink", syscalls.symlinkat(bytesOf(step.target), this.#staging, LINK_NAME));
        allow("link", syscalls.renameat2(this.#staging, LINK_NAME, parent, name));
        break;
      case "move":
        this.#move(parent, name, step.to);
        break;
    }
  }

  get touched(): Touched {
    if (this.#hasClosed) return undefined;
    return { inTree: [...this.#parents.keys()], kept: this.#kept < 0 ? undefined : String(this.#version) };
  }

  [Symbol.dispose](): void {
    for (const fd of this.#parents.values()) syscalls.close(fd);
    if (this.#kept >= 0) syscalls.close(this.#kept);
    syscalls.close(this.#staging);
    syscalls.close(this.#tree);
  }

  // The file has one of two places; when the second has it, something else may have the first by now.
  #retire(parent: number, name: string, as: string): void {
    const kept = this.#keptDirectory();
    if (syscalls.statat(kept, as, new Stat()) === 0) return;
    allow("retire", syscalls.renameat2(parent, name, kept, as), Errno.ENOENT);
  }

  #removeDirectory(parent: number, name: string, path: string): void {
    this.#forget(path);
    const code = syscalls.unlinkat(parent, name, AT_REMOVEDIR);
    allow("rmdir", code, Errno.ENOENT, Errno.ENOTDIR, Errno.ENOTEMPTY);
    if (code !== -Errno.ENOTEMPTY) return;
    // Somebody put something there by hand. It is none of the codebase's content, and must not block the codebase for good.
    allow("rmdir", syscalls.renameat2(parent, name, this.#staging, `stray-${this.#strays++}`));
  }

  // A staged file that is gone was put in place before.
  #putInPlace(parent: number, name: string, staged: string, mode: number): void {
    const dressed = syscalls.chmodat(this.#staging, staged, mode);
    if (dressed === -Errno.ENOENT) return;
    allow("chmod", dressed);
    allow("place", syscalls.renameat2(this.#staging, staged, parent, name));
  }

  #move(parent: number, name: string, to: string): void {
    const [directory, last] = splitPath(to);
    const target = check("open", this.#parent(directory));
    allow("move", syscalls.renameat2(parent, name, target, bytesOf(last)), Errno.ENOENT);
  }

  // Only what leaves may have lost its directory to a first attempt.
  #withoutParent(step: Step, errno: number): void {
    const leaves = ["keep", "retire", "unlink", "removeDirectory", "move"].includes(step.do);
    const isGone = errno === Errno.ENOENT || errno === Errno.ENOTDIR || errno === Errno.ELOOP;
    if (!(leaves && isGone)) throw new SystemError("open the directory", errno);
  }

  #parent(directory: string): number {
    const known = this.#parents.get(directory);
    if (known !== undefined) return known;
    const fd = openDirectory(this.#tree, directory);
    if (fd < 0) return fd;
    this.#parents.set(directory, fd);
    return fd;
  }

  #closeSome(): void {
    if (this.#parents.size < OPEN_DIRECTORIES) return;
    this.#hasClosed = true;
    for (const fd of this.#parents.values()) syscalls.close(fd);
    this.#parents.clear();
  }

  // A directory that is about to go, and may come again.
  #forget(path: string): void {
    const fd = this.#parents.get(path);
    if (fd === undefined) return;
    syscalls.close(fd);
    this.#parents.delete(path);
  }

  #keptDirectory(): number {
    if (this.#kept < 0) this.#kept = openOrMakePart(this.#place, "kept", String(this.#version));
    return this.#kept;
  }
}

function allow(operation: string, code: number, ...alsoFine: readonly number[]): void {
  if (code < 0 && !alsoFine.includes(-code)) throw new SystemError(operation, -code);
}
