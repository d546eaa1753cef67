import { join } from "node:path";
import { check, Errno, errnoName, SystemError, syscalls } from "@agentfense/fuse";
import type { ContentCopy, PinnedEntry } from "../codebase/copying.ts";
import { type CodebasePlace, openFileBeneath } from "../codebase/layout.ts";
import { type KnownCodebase, makeDirectories } from "../codebase/removal.ts";
import type { Step, StepsOutcome, Touched } from "../codebase/steps.ts";
import { closing } from "../filesystem/descriptors.ts";
import { bytesOf } from "../filesystem/names.ts";
import { ContentSender } from "./sending.ts";
import type { Jobs } from "./thread.ts";

const { Open } = syscalls;

/**
 * The codebases' part of the disk, below one directory that no second server may use. What takes longer than opening a
 * file happens on the job threads. Errors are the kernel's (`errno`).
 */
export class CodebaseDisk implements AsyncDisposable {
  readonly #path: string;
  readonly #root: number;
  readonly #jobs: Jobs;

  private constructor(path: string, root: number, jobs: Jobs) {
    this.#path = path;
    this.#root = root;
    this.#jobs = jobs;
  }

  /** The directory must exist and be the server's own. */
  static open(path: string, jobs: Jobs): CodebaseDisk {
    const root = syscalls.open(bytesOf(path), Open.RDONLY | Open.DIRECTORY);
    if (root < 0) throw new Error(`the codebase directory ${path} cannot be used: ${errnoName(-root)}`);
    if (syscalls.tryLock(root) < 0) {
      syscalls.close(root);
      throw new Error(`the codebase directory ${path} is in use by another server`);
    }
    return new CodebaseDisk(path, root, jobs);
  }

  create(codebase: string): void {
    check("make the codebase's directories", makeDirectories(this.#at(codebase)));
  }

  async remove(codebase: string): Promise<void> {
    await this.#jobs.run("removeDirectory", { ...this.#at(codebase), part: "" });
  }

  /** Leaves what the given codebases need and nothing else; gives those that have no directory. */
  async clean(known: readonly KnownCodebase[], unfinished: readonly string[]): Promise<readonly string[]> {
    return (await this.#jobs.run("cleanCodebases", { root: this.#root, known, unfinished })).missing;
  }

  send(codebase: string, upload: string): ContentSender {
    return new ContentSender(this.#jobs, this.#at(codebase), upload);
  }

  makeStaging(codebase: string, upload: string): string {
    const staging = check("open", syscalls.openBeneath(this.#root, `${codebase}/staging`, Open.PATH | Open.DIRECTORY));
    using _open = closing(staging);
    check("mkdir", syscalls.mkdirat(staging, upload, 0o700));
    return join(this.#path, codebase, "staging", upload);
  }

  async removeStaging(codebase: string, upload: string): Promise<void> {
    await this.#jobs.run("removeDirectory", { ...this.#at(codebase), part: `staging/${upload}` });
  }

  async inspectStaged(
    codebase: string,
    upload: string,
    files: readonly { readonly name: string; readonly size: number }[],
  ): Promise<readonly string[]> {
    return await this.#jobs.run("inspectStaged", { ...this.#at(codebase), upload, files });
  }

  async copy(codebase: string, upload: string, copies: readonly ContentCopy[], signal?: AbortSignal): Promise<void> {
    const options = signal === undefined ? {} : { signal };
    await this.#jobs.run("copyContents", { ...this.#at(codebase), upload, copies }, options);
  }

  /** Carries out a change: everybody sees it. */
  async runSteps(codebase: string, version: number, upload: string, steps: readonly Step[]): Promise<StepsOutcome> {
    return await this.#jobs.run("runSteps", { ...this.#at(codebase), version, upload, steps });
  }

  /** Resolves when the names that it changed are on the disk. */
  async settleSteps(codebase: string, touched: Touched): Promise<void> {
    await this.#jobs.run("settleSteps", { ...this.#at(codebase), touched });
  }

  /** A descriptor, or undefined for a file that is not there. At once: see HeadReader. */
  openTreeFile(codebase: string, path: string): number | undefined {
    return this.#openFile(`${codebase}/tree`, path);
  }

  openKept(codebase: string, keptAs: string): number | undefined {
    return this.#openFile(`${codebase}/kept`, keptAs);
  }

  /** Removes what these versions replaced. Whoever has some of it open keeps that. */
  async release(codebase: string, versions: readonly number[]): Promise<void> {
    await this.#jobs.run("releaseKept", { ...this.#at(codebase), versions });
  }

  close(file: number): void {
    syscalls.close(file);
  }

  /** What sandboxes of the newest version have as their lower layer. */
  treeDirectory(codebase: string): string {
    return join(this.#path, codebase, "tree");
  }

  async pin(codebase: string, version: number, entries: readonly PinnedEntry[]): Promise<string> {
    await this.#jobs.run("materialise", { ...this.#at(codebase), version, entries });
    return join(this.#path, codebase, "pinned", String(version));
  }

  async unpin(codebase: string, version: number): Promise<void> {
    await this.#jobs.run("removeDirectory", { ...this.#at(codebase), part: `pinned/${version}` });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    syscalls.close(this.#root);
  }

  #at(codebase: string): CodebasePlace {
    return { root: this.#root, codebase };
  }

  #openFile(part: string, path: string): number | undefined {
    const directory = syscalls.openBeneath(this.#root, part, Open.PATH | Open.DIRECTORY);
    if (directory === -Errno.ENOENT) return undefined;
    check("open", directory);
    const fd = openFileBeneath(directory, path);
    syscalls.close(directory);
    if (fd >= 0) return fd;
    if (fd === -Errno.ENOENT || fd === -Errno.ENOTDIR || fd === -Errno.ELOOP || fd === -Errno.EISDIR) return undefined;
    throw new SystemError("open content", -fd);
  }
}
