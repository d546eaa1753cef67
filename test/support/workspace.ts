import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import type { Rule } from "@agentfense/permission";
import type { WorkspaceEvent, WorkspaceMount, WorkspaceSpec } from "@agentfense/server/isolation";
import { expect } from "vitest";
import { MS } from "./constants.ts";
import { Daemon } from "./daemon-link.ts";
import { aWhile } from "./eventually.ts";
import { type As, type Identity, identityOf } from "./identity.ts";
import { joinBytes } from "./names.ts";
import { cString, syscall } from "./syscall.ts";
import { type Tree, treeState, writeTree } from "./tree.ts";

export interface WorkspaceOptions {
  /** The codebase; empty when absent. */
  readonly lower?: Tree;
  /** Further codebase layers below `lower`, upper ones first. */
  readonly lowers?: readonly Tree[];
  readonly rules: readonly Rule[];
  /** Who runs the daemon that serves the mount; root when absent. */
  readonly as?: As;
  /** false: no delta, the mount is read-only. */
  readonly delta?: boolean;
  readonly quota?: { readonly bytes?: number; readonly files?: number };
  readonly owner?: Identity;
  readonly passthrough?: boolean;
  readonly xattrs?: boolean;
  readonly revocable?: boolean;
  /** Layers that another workspace froze, the topmost first. */
  readonly frozen?: readonly string[];
}

/**
 * A guarded mount of a fresh codebase on the real kernel, with everything it needs in one temporary directory.
 * Disposing of it unmounts, removes the directory, and fails when the codebase is not what it was.
 */
export class TestWorkspace implements AsyncDisposable {
  readonly root: string;
  readonly mountPoint: string;
  /** The topmost codebase layer. */
  readonly lower: string;
  readonly delta: string;
  #daemon: Daemon;
  readonly #spec: WorkspaceSpec;
  readonly #events: WorkspaceEvent[] = [];
  #features: WorkspaceMount["features"] | undefined;
  #expected: Record<string, string>[];
  #frozen: readonly string[];

  private constructor(root: string, daemon: Daemon, spec: WorkspaceSpec, delta: string) {
    this.root = root;
    this.mountPoint = spec.mountPoint;
    this.lower = spec.lowers[0] ?? "";
    this.delta = delta;
    this.#daemon = daemon;
    this.#spec = spec;
    this.#expected = this.#lowerState();
    this.#frozen = (spec.frozen ?? []).map((tree) => dirname(tree));
  }

  static async open(options: WorkspaceOptions): Promise<TestWorkspace> {
    const as = options.as ?? "root";
    const root = mkdtempSync(join(tmpdir(), "agentfense-workspace-"));
    const spec = prepare(root, options);
    if (as === "user") giveTo(identityOf("user"), root);
    const workspace = new TestWorkspace(root, Daemon.ofProcess(as), spec, join(root, "delta"));
    try {
      await workspace.#mount();
    } catch (error) {
      await workspace[Symbol.asyncDispose]();
      throw error;
    }
    return workspace;
  }

  get daemonPid(): number {
    return this.#daemon.pid;
  }

  get features(): WorkspaceMount["features"] {
    if (this.#features === undefined) throw new Error("the workspace is not mounted");
    return this.#features;
  }

  /** What the daemon reported so far, in order. */
  events(): WorkspaceEvent[] {
    return [...this.#events];
  }

  /** The layers that snapshots froze, the topmost first. */
  get frozen(): readonly string[] {
    return this.#frozen;
  }

  /** Freezes the delta as it is; gives the directory of the layer. */
  async freeze(options: { readonly still?: boolean } = {}): Promise<string> {
    const { still = true } = options;
    const layers = join(this.root, "layers");
    mkdirSync(layers, { recursive: true });
    if (this.#daemon.as === "user") giveTo(identityOf("user"), layers);
    const layer = join(layers, `layer-${this.#frozen.length}`);
    const beneath = [layer, ...this.#frozen].map((path) => basename(path));
    const spec = { delta: this.delta, layer, beneath, trees: { tree: 0 }, still };
    const { outcome } = await this.#daemon.freeze(this.mountPoint, spec);
    expect(outcome).toBe("frozen");
    this.#frozen = [layer, ...this.#frozen];
    return layer;
  }

  /** Mounts layers that were frozen over the same codebase, with a delta of their own. */
  async fork(layers: readonly string[]): Promise<AsyncDisposable & { readonly mountPoint: string }> {
    const mountPoint = mkdtempSync(join(this.root, "fork-"));
    const delta = mkdtempSync(join(this.root, "fork-delta-"));
    if (this.#daemon.as === "user") for (const path of [mountPoint, delta]) giveTo(identityOf("user"), path);
    const frozen = layers.map((layer) => join(layer, "tree"));
    await this.#daemon.mount({ ...this.#spec, mountPoint, delta, frozen }, () => {});
    return { mountPoint, [Symbol.asyncDispose]: () => this.#daemon.unmount(mountPoint) };
  }

  /** The path of an entry, given as the rules write it: "/src/app.ts". */
  at(path: string): string {
    return this.mountPoint + path;
  }

  async updateRules(rules: readonly Rule[]): Promise<void> {
    await this.#daemon.updateRules(this.mountPoint, rules);
  }

  /** Unmounts and mounts again over the same layers, optionally with other rules. */
  async remount(rules: readonly Rule[] = this.#spec.rules): Promise<void> {
    await this.#daemon.unmount(this.mountPoint);
    await this.#mount(rules);
  }

  /**
   * Has the kernel forget the names of this mount that nobody uses, as it does when it wants memory; of this mount only, since
   * others on the machine are in the middle of something. A change of mount options that changes none has this effect.
   */
  forgetNames(): void {
    const none = cString("none");
    const { errno } = syscall("mount", none, cString(this.mountPoint), none, MS.REMOUNT | MS.NOSUID | MS.NODEV, none);
    if (errno !== "OK") throw new Error(`remount of ${this.mountPoint}: ${errno}`);
  }

  /** Ends the daemon as a crash would: the mount point answers ENOTCONN from then on. */
  async kill(): Promise<void> {
    await this.#daemon.kill();
  }

  /**
   * What an operator does after a crash: a new daemon cleans up the dead mount and mounts the same layers. Returns
   * whether there was a dead mount.
   */
  async recover(): Promise<boolean> {
    await this.kill();
    this.#daemon = Daemon.ofProcess(this.#daemon.as);
    const cleaned = await this.#daemon.cleanStaleMount(this.mountPoint);
    await this.#mount();
    return cleaned;
  }

  /** Lets the host change the codebase under the mount; what it leaves is what disposal will compare with. */
  onHost(change: (lower: string) => void): void {
    this.assertLowerUntouched();
    change(this.lower);
    this.#expected = this.#lowerState();
  }

  /** Fails when names, content, modes, owners or times of a codebase layer are not what they were. */
  assertLowerUntouched(): void {
    expect(this.#lowerState(), "the codebase must not change").toEqual(this.#expected);
  }

  /** Every path in the delta's tree and work directories. */
  deltaPaths(): string[] {
    return Object.keys(treeState(this.delta)).sort();
  }

  /** Paths of the delta whose content holds the text. */
  deltaPathsHolding(text: string): string[] {
    return this.deltaPaths().filter((path) => {
      const entry = join(this.delta, path);
      return lstatSync(entry).isFile() && readFileSync(entry).includes(text);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#unmount();
    detach(this.mountPoint);
    try {
      this.assertLowerUntouched();
    } finally {
      rmSync(this.root, { recursive: true, force: true });
    }
  }

  async #mount(rules: readonly Rule[] = this.#spec.rules): Promise<void> {
    this.#features = await this.#daemon.mount(
      { ...this.#spec, frozen: this.#frozen.map((layer) => join(layer, "tree")), rules },
      (event) => this.#events.push(event),
    );
  }

  async #unmount(): Promise<void> {
    if (this.#features === undefined) return;
    this.#features = undefined;
    const patience = aWhile(5000);
    // A daemon that was killed on purpose cannot unmount; detach() below takes over.
    await Promise.race([this.#daemon.unmount(this.mountPoint).catch(() => {}), patience]);
  }

  #lowerState(): Record<string, string>[] {
    return this.#spec.lowers.map(treeState);
  }
}

export function openWorkspace(options: WorkspaceOptions): Promise<TestWorkspace> {
  return TestWorkspace.open(options);
}

function prepare(root: string, options: WorkspaceOptions): WorkspaceSpec {
  chmodSync(root, 0o755);
  const layers = [options.lower ?? {}, ...(options.lowers ?? [])];
  const lowers = layers.map((tree, index) => {
    const path = join(root, index === 0 ? "lower" : `lower-${index}`);
    mkdirSync(path, { mode: 0o755 });
    writeTree(path, tree);
    return path;
  });
  const mountPoint = join(root, "mnt");
  mkdirSync(mountPoint);
  if (options.delta !== false) mkdirSync(join(root, "delta"));
  return {
    mountPoint,
    lowers,
    rules: options.rules,
    ...(options.delta === false ? {} : { delta: join(root, "delta") }),
    ...(options.quota === undefined ? {} : { quota: options.quota }),
    ...(options.frozen === undefined ? {} : { frozen: options.frozen.map((layer) => join(layer, "tree")) }),
    ...(options.owner === undefined ? {} : { owner: options.owner }),
    ...(options.passthrough === undefined ? {} : { passthrough: options.passthrough }),
    ...(options.xattrs === undefined ? {} : { xattrs: options.xattrs }),
    ...(options.revocable === undefined ? {} : { revocable: options.revocable }),
  };
}

function giveTo({ uid, gid }: Identity, root: string): void {
  const visit = (path: Buffer): void => {
    const status = lstatSync(path);
    if (status.isSymbolicLink()) {
      lchownSync(path, uid, gid);
      return;
    }
    chownSync(path, uid, gid);
    // chown drops setuid bits; a codebase may have them, and what becomes of them is tested.
    if ((status.mode & 0o6000) !== 0) chmodSync(path, status.mode & 0o7777);
    if (!status.isDirectory()) return;
    for (const name of readdirSync(path, { encoding: "buffer" })) visit(joinBytes(path, name));
  };
  visit(Buffer.from(root));
}

/** The last resort: takes away whatever is still mounted at the path, so that removing the directory is safe. */
function detach(mountPoint: string): void {
  const mounted = () => readFileSync("/proc/self/mountinfo", "utf8").includes(` ${mountPoint} `);
  if (mounted()) execFileSync("umount", ["--lazy", mountPoint], { stdio: "pipe" });
  if (mounted()) throw new Error(`${mountPoint} is still mounted; its directory is left in place`);
}
