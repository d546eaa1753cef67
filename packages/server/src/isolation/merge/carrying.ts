import { check, Errno, syscalls } from "@agentfense/fuse";
import { reasonFor } from "../changes/application.ts";
import { Batch } from "../changes/batch.ts";
import { type EntryHandle, readTarget, statOf } from "../changes/comparison.ts";
import { CodebaseWriter, placeLink, removeUnfinished } from "../changes/destination.ts";
import { keep } from "../changes/durability.ts";
import { type Delta, openDirectoryAt } from "../filesystem/delta.ts";
import { closing } from "../filesystem/descriptors.ts";
import { type FileOnDisk, reach } from "./files.ts";
import type { Entry, Step } from "./plan.ts";

const { AT_REMOVEDIR, FileType, Open } = syscalls;

export interface Surroundings {
  /** The directory that the steps are about. */
  readonly root: number;
  /** In its `work` merged texts stand ready before the first step; what a crash leaves there goes when it is opened again. */
  readonly staging: Delta;
  readonly signal: AbortSignal | undefined;
}

const STEPS_A_TURN = 32;

/** Carries the steps of a plan out, each by itself; why one was not, by its path. */
export async function carryOut(
  steps: readonly Step<FileOnDisk>[],
  surroundings: Surroundings,
): Promise<ReadonlyMap<string, string>> {
  using carrying = new Carrying(surroundings);
  for (const step of steps) carrying.prepare(step);
  for (const [index, step] of steps.entries()) {
    if (index % STEPS_A_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
    await carrying.carry(step);
  }
  carrying.finish(steps);
  return carrying.failures;
}

class Carrying implements Disposable {
  readonly failures = new Map<string, string>();
  readonly #surroundings: Surroundings;
  readonly #writer: CodebaseWriter;
  /** Merged texts, by the path that they are for. */
  readonly #staged = new Map<string, string>();
  readonly #removed = new Set<string>();
  readonly #batch = new Batch(keep);
  readonly #entered = new Set<string>();

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
    this.#writer = new CodebaseWriter(surroundings.signal);
  }

  /** Throws where the disk has no room: nothing was written yet. */
  prepare(step: Step<FileOnDisk>): void {
    if (step.kind !== "file" || typeof step.content !== "string") return;
    const { staging } = this.#surroundings;
    const name = staging.temporaryName();
    this.#staged.set(step.path, name);
    const fd = check(
      "write a merged text",
      syscalls.openat(staging.work, name, Open.WRONLY | Open.CREAT | Open.EXCL, 0o600),
    );
    using _open = closing(fd);
    const bytes = Buffer.from(step.content, "latin1");
    for (let at = 0; at < bytes.length; ) {
      at += check("write a merged text", syscalls.pwrite(fd, bytes.subarray(at), bytes.length - at, at));
    }
    check("write a merged text", syscalls.fchmod(fd, step.mode));
  }

  async carry(step: Step<FileOnDisk>): Promise<void> {
    const { root, signal } = this.#surroundings;
    const names = step.path.split("/");
    using stack = new DisposableStack();
    const place = stack.use(reach({ root, isDelta: false, names }));
    const above = names.slice(0, -1).join("/");
    if (!this.#entered.has(above) && place.directory >= 0) removeUnfinished(place.directory);
    this.#entered.add(above);
    if (signal?.aborted) this.failures.set(step.path, "it was interrupted");
    else if (!this.#isAsPlanned(place, step)) this.#failed(step, Errno.ESTALE);
    else if (step.kind === "file") await this.#writeFile(step, place, stack.move());
    else this.#failed(step, this.#write(place, step));
  }

  /** The file has its name when many have been written; `held` is what it needs until then. */
  async #writeFile(
    step: Extract<Step<FileOnDisk>, { readonly kind: "file" }>,
    target: EntryHandle,
    held: DisposableStack,
  ): Promise<void> {
    const staged = this.#staged.get(step.path);
    if (staged === undefined && typeof step.content === "string") throw new Error("a merged text was not prepared");
    using source =
      typeof step.content === "string"
        ? { directory: this.#surroundings.staging.work, name: staged!, [Symbol.dispose]() {} }
        : reach(step.content);
    const file = await this.#writer.file({ source, target });
    if (typeof file === "number") {
      held.dispose();
      this.#failed(step, file);
      return;
    }
    held.use(file);
    const waiting = {
      fd: file.fd,
      size: file.size,
      place: () => (this.#isAsPlanned(target, step) ? file.place() : Errno.ESTALE),
      [Symbol.dispose]: () => held.dispose(),
    };
    // By its descriptor: whatever the agent's file had, it has the mode that was decided.
    const code = syscalls.fchmod(file.fd, step.mode);
    if (code < 0) this.#failed(step, -code);
    this.#batch.add(waiting, (errno) => this.#failed(step, errno));
  }

  #failed({ path }: Step<FileOnDisk>, errno: number): void {
    if (errno !== 0) this.failures.set(path, reasonFor(errno));
  }

  /** Modes of directories, which may shut us out, and all names safely on the disk. */
  finish(steps: readonly Step<FileOnDisk>[]): void {
    const { root } = this.#surroundings;
    this.#batch.flush();
    for (const step of steps.toReversed()) {
      if (step.kind !== "directory" || this.failures.has(step.path)) continue;
      using place = reach({ root, isDelta: false, names: step.path.split("/") });
      const special = (statOf(place)?.mode ?? 0) & 0o7000;
      const code = syscalls.chmodat(place.directory, place.name, special | step.mode);
      if (code < 0) this.failures.set(step.path, reasonFor(-code));
    }
    const opened: number[] = [];
    try {
      for (const path of this.#entered) {
        const directory = openDirectoryAt(root, path === "" ? [] : path.split("/"));
        if (directory < 0) continue; // removed
        using _path = closing(directory);
        const fd = syscalls.openat(directory, ".", Open.RDONLY | Open.DIRECTORY);
        if (fd >= 0) opened.push(fd);
      }
      const [errno] = keep(opened).values();
      // Nothing leaves the deltas that the disk may not have.
      if (errno !== undefined) for (const step of steps) this.#failed(step, errno);
    } finally {
      for (const fd of opened) syscalls.close(fd);
    }
  }

  #write(target: EntryHandle, step: Exclude<Step<FileOnDisk>, { readonly kind: "file" }>): number {
    if (step.kind === "link") return placeLink(target, step.target);
    if (step.kind === "directory") return step.old?.kind === "directory" ? 0 : this.#writer.makeDirectory({ target });
    const flags = step.old?.kind === "directory" ? AT_REMOVEDIR : 0;
    const errno = -syscalls.unlinkat(target.directory, target.name, flags);
    if (errno === 0) this.#removed.add(step.path);
    return errno;
  }

  /** Nobody has changed since what stands there. */
  #isAsPlanned(place: EntryHandle, { path, old }: Step<FileOnDisk>): boolean {
    const now = statOf(place);
    if (old === undefined || this.#removed.has(path)) return now === undefined;
    return now !== undefined && isSameEntry(place, now, old);
  }

  [Symbol.dispose](): void {
    this.#batch[Symbol.dispose]();
    for (const name of this.#staged.values()) syscalls.unlinkat(this.#surroundings.staging.work, name);
  }
}

function isSameEntry(place: EntryHandle, now: syscalls.Stat, old: Entry<FileOnDisk>): boolean {
  if (old.kind === "directory") return now.type === FileType.DIRECTORY;
  if (old.kind === "symlink") return now.type === FileType.SYMLINK && readTarget(place) === old.target;
  if (old.kind !== "file") return now.type !== FileType.REGULAR && now.type !== FileType.DIRECTORY;
  const { stat } = old.content;
  const sameTimes = now.mtime === stat.mtime && now.mtimeNs === stat.mtimeNs && now.ctime === stat.ctime;
  return now.ino === stat.ino && now.size === stat.size && sameTimes && now.ctimeNs === stat.ctimeNs;
}
