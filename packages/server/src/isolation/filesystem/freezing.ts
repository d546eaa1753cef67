import { mkdirSync } from "node:fs";
import { check, Errno, errnoName, syscalls } from "@agentfense/fuse";
import type { Context, Writing } from "./context.ts";
import { Delta, HOME_IN_DELTA, TREE_IN_DELTA, WORK_OF_HOME } from "./delta.ts";
import { closing } from "./descriptors.ts";
import { namesOfInode } from "./directory-walk.ts";
import { bytesOf } from "./names.ts";
import type { Node } from "./node.ts";
import { keepTimes } from "./own-rights.ts";
import type { QuotaUse } from "./quota.ts";
import { MORE, Transfer } from "./transfer.ts";
import { atOnce, turn, type Walk } from "./walks.ts";
import { copyUserXattrs } from "./xattrs.ts";

const { Open, Rename, Stat } = syscalls;

// A delta is frozen by changing places with an empty one, in a single rename. What it is made of goes along, and the empty one says
// what it lies on:
//
//   <delta>/tree, <delta>/home   as in delta.ts
//   <delta>/beneath              the layers that it lies on, one name a line, the topmost first; none of them: there is no such file
//
//   <layers>/<name>/             a delta that was frozen under this name, which does not change any more
//
// A crash leaves the delta as it was, with an empty directory among the layers that nobody names, or lying on the frozen one. So
// that time depends on neither, nothing goes through the tree or the delta.

/** What a delta lies on. */
export const BENEATH = "beneath";

const SLICE = 8 << 20;

export interface FreezeSpec {
  /** The delta's directory. */
  readonly delta: string;
  /** Where it goes: a directory beside others of its kind, on the same disk, that does not exist yet. */
  readonly layer: string;
  /** What the new delta lies on: the name of the layer, and what that lay on. */
  readonly beneath: readonly string[];
  /** The numbers of the mount's trees that are in the delta. */
  readonly trees: { readonly tree: number; readonly home?: number | undefined };
  /** Nobody inside writes: what writes past us can be copied as it is. */
  readonly still: boolean;
}

/**
 * frozen   with what all layers of the sandbox take by now, where that is counted
 * writing  somebody writes past us; it has to be held still first
 */
export type Frozen = { readonly outcome: "frozen"; readonly used?: QuotaUse } | { readonly outcome: "writing" };

/** A tree of the delta that is to be frozen. */
interface Part {
  readonly context: Context;
  readonly writing: Writing;
  readonly name: string;
  readonly workName: string;
}

/** A file whose handles write past us, so that it has to stay the delta's; what is frozen is a copy. */
interface Carried {
  readonly part: Part;
  readonly node: Node;
  readonly copy: number;
}

/** Freezes the delta of a live mount; no handle, lock or mapping notices. */
export function* freeze(contexts: readonly Context[], spec: FreezeSpec): Walk<Frozen> {
  const parts = [partOf(contexts[spec.trees.tree], TREE_IN_DELTA, "work")];
  if (spec.trees.home !== undefined) parts.push(partOf(contexts[spec.trees.home], HOME_IN_DELTA, WORK_OF_HOME));
  const carried: Carried[] = [];
  try {
    const isWritten = (): boolean =>
      !spec.still && parts.some((part) => passedBy(part).some(({ writers }) => writers > 0));
    if (isWritten()) return { outcome: "writing" };
    for (const part of parts) for (const node of passedBy(part)) yield* carry(part, node, carried);
    // Somebody may have come, or gone, while a large one was copied.
    const isComplete = parts.every((part) => passedBy(part).every((node) => carried.some((one) => one.node === node)));
    if (isWritten() || !isComplete) return { outcome: "writing" };
    const fresh = makeEmptyDelta(spec, parts);
    using _open = closing(fresh.root, ...fresh.trees);
    // From here on in one turn: every view is that of one moment.
    exchange(spec, fresh, parts);
    for (const one of carried) if (isPassedBy(one.part, one.node)) keepInDelta(one);
    const quota = parts[0]!.writing.quota;
    if (quota?.limits.bytes === undefined) return { outcome: "frozen" };
    return { outcome: "frozen", used: { bytes: quota.used.bytes, files: quota.used.files } };
  } finally {
    for (const { copy } of carried) syscalls.close(copy);
  }
}

function partOf(context: Context | undefined, name: string, workName: string): Part {
  if (context?.writing === undefined) throw new Error("a workspace without a delta has nothing to freeze");
  return { context, writing: context.writing, name, workName };
}

/** Files of the delta that are open in a way that cannot be turned to another file. */
function passedBy(part: Part): Node[] {
  return [...part.context.tree.passedBy].filter((node) => isPassedBy(part, node));
}

function isPassedBy({ context }: Part, node: Node): boolean {
  return context.tree.passedBy.has(node) && node.isOfMount && !node.isNameless;
}

/** The same for a delta that nobody has mounted, which need not be there yet. `codebase` is the directory that it is of. */
export function freezeIdle(
  spec: Pick<FreezeSpec, "delta" | "layer" | "beneath"> & { readonly codebase: string },
): void {
  mkdirSync(spec.delta, { recursive: true, mode: 0o700 });
  const codebase = check("open a codebase", syscalls.open(bytesOf(spec.codebase), Open.PATH | Open.DIRECTORY));
  using _codebase = closing(codebase);
  const delta = Delta.open(bytesOf(spec.delta), codebase);
  try {
    atOnce(delta.recover());
    const fresh = makeEmptyDelta(spec, []);
    using _fresh = closing(fresh.root);
    exchange(spec, fresh, []);
  } finally {
    delta.close();
  }
}

interface EmptyDelta {
  readonly root: number;
  /** As the parts. */
  readonly trees: readonly number[];
}

function makeEmptyDelta({ layer, beneath }: Pick<FreezeSpec, "layer" | "beneath">, parts: readonly Part[]): EmptyDelta {
  const { parent, name } = placeOf(layer);
  using _parent = closing(parent);
  check("make a layer", syscalls.mkdirat(parent, name, 0o700));
  const root = check("open a layer", syscalls.openat(parent, name, Open.PATH | Open.DIRECTORY));
  const trees: number[] = [];
  try {
    for (const part of parts) trees.push(makeLike(root, part));
    const file = check(
      "write down what a delta lies on",
      syscalls.openat(root, BENEATH, Open.WRONLY | Open.CREAT | Open.EXCL, 0o600),
    );
    using _file = closing(file);
    const content = Buffer.from(`${beneath.join("\n")}\n`, "latin1");
    check("write down what a delta lies on", syscalls.pwrite(file, content, content.length, 0));
    return { root, trees };
  } catch (error) {
    for (const fd of [root, ...trees]) syscalls.close(fd);
    throw error;
  }
}

/** To the sandbox the root stays what it was. */
function makeLike(root: number, { writing, name }: Part): number {
  check(`make ${name} of a delta`, syscalls.mkdirat(root, name, 0o700));
  const fd = check(`open ${name} of a delta`, syscalls.openat(root, name, Open.PATH | Open.DIRECTORY));
  const stat = new Stat();
  const { tree } = writing.delta;
  if (syscalls.fstat(tree, stat) < 0) return fd;
  copyUserXattrs(tree, fd);
  syscalls.fchownat(fd, "", stat.uid, stat.gid);
  syscalls.chmodHeld(fd, stat.mode & 0o1777);
  syscalls.utimensat(fd, "", stat.atime, stat.atimeNs, stat.mtime, stat.mtimeNs);
  return fd;
}

function exchange(
  { delta, layer }: Pick<FreezeSpec, "delta" | "layer">,
  fresh: EmptyDelta,
  parts: readonly Part[],
): void {
  const [here, there] = [placeOf(delta), placeOf(layer)];
  using _open = closing(here.parent, there.parent);
  const frozen = check("open a delta", syscalls.openat(here.parent, here.name, Open.PATH | Open.DIRECTORY));
  using _frozen = closing(frozen);
  check("freeze a delta", syscalls.renameat2(here.parent, here.name, there.parent, there.name, Rename.EXCHANGE));
  for (const [index, { context, writing, name, workName }] of parts.entries()) {
    const { delta: live } = writing;
    const to = fresh.trees[index]!;
    // What is under construction there goes on: it keeps its place, and the lock on it. Without it the next mount makes another.
    if (name === HOME_IN_DELTA) {
      using _times = keepTimes(to);
      syscalls.renameat2(live.tree, workName, to, workName);
    } else syscalls.renameat2(frozen, workName, fresh.root, workName);
    live.continueIn(to);
    context.tree.lay(to);
  }
}

function* carry(part: Part, node: Node, carried: Carried[]): Walk<void> {
  const stat = new Stat();
  if (syscalls.fstat(node.fd, stat) < 0) return;
  if (stat.nlink > node.names().length) yield* bindNames(part, stat);
  const draft = syscalls.openat(part.writing.delta.work, ".", Open.RDWR | Open.TMPFILE, 0o600);
  check("copy a file that is open for writing", draft);
  carried.push({ part, node, copy: draft });
  const source = syscalls.open(`/proc/self/fd/${node.fd}`, Open.RDONLY | Open.NONBLOCK);
  check("copy a file that is open for writing", source);
  using _source = closing(source);
  if (syscalls.cloneFile(source, draft) !== 0) {
    const transfer = new Transfer(source, draft, stat.size);
    let done = transfer.step(SLICE);
    for (; done === MORE; done = transfer.step(SLICE)) {
      turn.isOver();
      yield;
    }
    if (done !== 0) throw new Error(`a file that is open for writing cannot be copied: ${errnoName(done)}`);
  }
  copyUserXattrs(source, draft);
  syscalls.fchownat(draft, "", stat.uid, stat.gid);
  syscalls.fchmod(draft, stat.mode & 0o1777);
  syscalls.utimensat(draft, "", stat.atime, stat.atimeNs, stat.mtime, stat.mtimeNs);
  const quota = part.writing.quota;
  if (quota) quota.used.files += node.names().length;
}

/** All names of a file of the delta: each of them is to be the file's, and none the copy's. */
function* bindNames({ context: { tree } }: Part, { ino, nlink }: syscalls.Stat): Walk<void> {
  const root = tree.descriptors.get(tree.root, tree.stack.top);
  for (const names of yield* namesOfInode(root, ino, nlink)) {
    let directory = tree.root;
    for (const [index, name] of names.entries()) {
      if (tree.resolve(directory, name) !== 0) break;
      const node = tree.bind(directory, name);
      if (index < names.length - 1) directory = node;
    }
  }
}

/** The file itself moves on into the delta; what is frozen under its names is the copy. */
function keepInDelta({ part, node, copy }: Carried): void {
  const { tree } = part.context;
  const frozen = node.layer;
  for (const { parent, name } of node.names()) {
    const from = tree.descriptors.get(parent, frozen);
    const to = part.writing.copyUp.directory(parent);
    if (from < 0 || to < 0)
      throw new Error(`a file that is open for writing is lost: ${errnoName(-Math.min(from, to))}`);
    using _from = keepTimes(from);
    using _to = keepTimes(to);
    const moved = syscalls.renameat2(from, name, to, name);
    if (-moved === Errno.ENOENT) continue;
    check("keep a file that is open for writing", moved);
    check("freeze a copy of a file that is open for writing", syscalls.linkDescriptor(copy, from, name));
  }
  node.layers = tree.single(tree.stack.top);
}

function placeOf(path: string): { readonly parent: number; readonly name: string } {
  const bytes = bytesOf(path);
  const slash = bytes.lastIndexOf("/");
  const parent = syscalls.open(bytes.slice(0, slash), Open.PATH | Open.DIRECTORY);
  return { parent: check(`open ${path}`, parent), name: bytes.slice(slash + 1) };
}
