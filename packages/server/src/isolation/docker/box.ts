import { rm, writeFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { join } from "node:path";
import {
  type Box,
  type BoxCommand,
  type BoxProcess,
  type BoxSpec,
  type Cancellable,
  type ResourceUsage,
  refuseHostNetwork,
  type ShellCommand,
  type ShellProcess,
  type StartOptions,
  type TerminalCommand,
  type TerminalProcess,
} from "../backend/backend.ts";
import { unusedOwner } from "../backend/box-owner.ts";
import { IsolationError, notRunning } from "../backend/isolation-error.ts";
import { PauseSwitch } from "../backend/pause-switch.ts";
import type { Owner } from "../filesystem/presentation.ts";
import type { TrustPlan } from "../network/trust.ts";
import { Container, type ContainerOptions } from "./container.ts";
import { DaemonError } from "./daemon.ts";
import type { Image } from "./image.ts";
import { containerPlan } from "./plan.ts";
import { ContainerProcess } from "./process.ts";
import { COMMAND_SCRIPT } from "./scripts.ts";
import { openContainerShell, openContainerTerminal } from "./shell.ts";

export interface DockerBoxOptions extends Omit<ContainerOptions, "plan" | "answerIn" | "unknownRuntime" | "awake"> {
  readonly instance: string;
  /** On this host, and there while it runs: for files that it is shown. */
  readonly directory: string;
  readonly spec: BoxSpec;
  /** Files to lay over those of the image. */
  readonly trust: TrustPlan | undefined;
  readonly image: Image;
  readonly runtime: string;
  /** Why ports of containers are out of reach; undefined when they are not. */
  readonly noPorts: string | undefined;
  readonly onDestroyed: () => void;
}

/**
 * A box is a container while it runs and nothing otherwise: its root is read-only and the rest is memory, so there is
 * nothing to keep from stop to start, and the mounts only have to exist while the container does.
 */
export class DockerBox implements Box {
  readonly owner: Owner;
  readonly #options: DockerBoxOptions;
  readonly #keeper = unusedOwner();
  #container: Container | undefined;
  /** On the host, as long as a container may be shown them. */
  readonly #written: string[] = [];
  #shells: readonly string[] | undefined;
  readonly #pause = new PauseSwitch({
    freeze: () => this.#running().pause(),
    thaw: async () => this.#container?.unpause(),
  });
  #started: Promise<void> | undefined;
  #destroyed: Promise<void> | undefined;

  constructor(options: DockerBoxOptions) {
    this.#options = options;
    this.owner = options.owner;
  }

  start(options: StartOptions = {}): Promise<void> {
    this.#started ??= this.#start(options);
    return this.#started;
  }

  async run(command: BoxCommand, options: Cancellable = {}): Promise<BoxProcess> {
    const { argv, workdir, stdin } = command;
    const request = { script: COMMAND_SCRIPT, argv, env: this.#environment(command.env), workdir, stdin };
    return await this.#pause.awake(() => ContainerProcess.start(this.#running(), request, options));
  }

  async openShell(command: ShellCommand, options: Cancellable = {}): Promise<ShellProcess> {
    const request = { ...command, env: this.#environment(command.env) };
    return await this.#pause.awake(() => openContainerShell(this.#running(), request, options.signal));
  }

  async openTerminal(command: TerminalCommand, options: Cancellable = {}): Promise<TerminalProcess> {
    const request = { ...command, env: this.#environment(command.env) };
    return await this.#pause.awake(() => openContainerTerminal(this.#running(), request, options.signal));
  }

  async connect(port: number, options: Cancellable = {}): Promise<Socket> {
    refuseHostNetwork(this.#options.spec.network);
    const { noPorts } = this.#options;
    if (noPorts !== undefined) {
      throw new IsolationError("RUNTIME_UNAVAILABLE", `a container's ports cannot be reached: ${noPorts}`, {
        hint: "use a server of root with runc or crun, or the runtime bwrap, whose ports every server reaches",
      });
    }
    return await this.#running().connect(port, options.signal);
  }

  async shells(): Promise<readonly string[]> {
    this.#shells ??= await this.#running().helper.shells();
    return this.#shells;
  }

  async usage(): Promise<ResourceUsage> {
    return await this.#running().usage();
  }

  get isPaused(): boolean {
    return this.#pause.isPaused;
  }

  async pause(): Promise<void> {
    this.#running();
    await this.#pause.pause();
  }

  async resume(): Promise<void> {
    this.#running();
    await this.#pause.resume();
  }

  destroy(): Promise<void> {
    this.#destroyed ??= this.#destroy();
    return this.#destroyed;
  }

  async #destroy(): Promise<void> {
    await this.#started?.catch(() => {});
    await this.#remove();
    this.#options.onDestroyed();
  }

  async #start({ signal, mounted }: StartOptions): Promise<void> {
    await mounted;
    if (this.#destroyed !== undefined) throw notRunning();
    const laid = await this.#writeFiles();
    const options = {
      ...this.#options,
      plan: containerPlan({ ...this.#options, keeper: this.#keeper, laid }),
      answerIn: this.#options.spec.answerIn,
      unknownRuntime: this.#options.runtime !== "runc",
      awake: <T>(work: () => Promise<T>) => this.#pause.awake(work),
    };
    try {
      const container = await Container.start(options, signal);
      this.#container = container;
      // The helper must be in the box before any command is.
      this.#shells = await container.helper.shells();
    } catch (error) {
      await this.#remove();
      throw describeStartFailure(error);
    }
    if (this.#shells.length === 0) {
      await this.#remove();
      throw new IsolationError("PROGRAM_NOT_FOUND", "the image has no shell at /bin/sh");
    }
  }

  /** Each content once, whatever number of places has it. */
  async #writeFiles(): Promise<{ source: string; target: string }[]> {
    const laid = Object.entries(this.#options.trust?.files ?? {});
    const contents = [...new Set(laid.map(([, content]) => content))];
    const sourceOf = (content: Uint8Array): string =>
      join(this.#options.directory, `laid-${contents.indexOf(content)}`);
    for (const content of contents) {
      this.#written.push(sourceOf(content));
      await writeFile(sourceOf(content), content, { mode: 0o444, flag: "wx" });
    }
    return laid.map(([target, content]) => ({ source: sourceOf(content), target }));
  }

  async #remove(): Promise<void> {
    const container = this.#container;
    this.#container = undefined;
    await container?.remove();
    for (const path of this.#written.splice(0)) await rm(path, { force: true });
    await this.#pause.resume(); // who waits for a pause waits no longer
  }

  #running(): Container {
    if (this.#container === undefined) throw notRunning();
    return this.#container;
  }

  #environment(env: Readonly<Record<string, string>>): Record<string, string> {
    return { ...this.#options.trust?.env, ...this.#options.spec.env, ...env };
  }
}

function describeStartFailure(error: unknown): Error {
  if (error instanceof IsolationError && !(error instanceof DaemonError)) return error;
  const text = error instanceof DaemonError ? error.said : "";
  const hint = START_HINTS.find(({ pattern }) => pattern.test(text));
  return new IsolationError(hint?.code ?? "INTERNAL", hint?.message ?? "the engine could not start the sandbox", {
    hint: hint?.hint,
    cause: error,
  });
}

const START_HINTS = [
  {
    pattern: /bind source path does not exist|invalid mount config|permission denied.*mount|transport endpoint/i,
    code: "RUNTIME_UNAVAILABLE",
    message: "the engine cannot see the sandbox's workspace",
    hint: "a server that is not root needs user_allow_other in /etc/fuse.conf; a remote engine cannot be used",
  },
  {
    pattern: /docker-init/i,
    code: "RUNTIME_UNAVAILABLE",
    message: "the engine has no docker-init",
    hint: "install tini, or a complete Docker engine",
  },
  {
    pattern: /network bridge not found|could not find .*bridge/i,
    code: "RUNTIME_UNAVAILABLE",
    message: "the engine has no bridge network",
    hint: "start the engine without --bridge=none, or use the network none or host",
  },
  {
    pattern: /minimum memory limit/i,
    code: "INVALID_ARGUMENT",
    message: "the memory limit is too small for a container",
    hint: "at least 6 MiB, and more for most programs",
  },
  {
    pattern: /no space left on device|cannot allocate memory|resource temporarily unavailable/i,
    code: "RESOURCES_EXHAUSTED",
    message: "the host has no room for another container",
    hint: "free memory, disk space or processes",
  },
] as const;
