import { join } from "node:path";
import type { Backend, Box, BoxSpec, CreateOptions, TrustFiles } from "../backend/backend.ts";
import { pickBoxOwner } from "../backend/box-owner.ts";
import { DescriptorRoom } from "../backend/descriptor-room.ts";
import { findProgram } from "../backend/find-program.ts";
import { IsolationError, invalid } from "../backend/isolation-error.ts";
import { Launcher } from "../bwrap/launcher.ts";
import type { LogLine } from "../log.ts";
import { descriptorLimit } from "../mount/descriptor-plan.ts";
import { type TrustPlan, trustFilesWith, trustPlan } from "../network/trust.ts";
import { DockerBox } from "./box.ts";
import { removeContainer } from "./container.ts";
import { type DaemonInfo, DockerDaemon } from "./daemon.ts";
import { EgressGuard, reasonAgainstSockets } from "./egress.ts";
import { findImage, type Image, type ImagePolicy } from "./image.ts";
import { checkImageName } from "./image-name.ts";
import { ImageTrusts } from "./image-trust.ts";
import { LABEL, showsImage } from "./plan.ts";

export interface DockerOptions {
  /** Which server the containers belong to. */
  readonly instance: string;
  /** The directory of the instance: in it each sandbox has one by the name of its box, while it runs. */
  readonly directory: string;
  /** Default: the socket in DOCKER_HOST, else /var/run/docker.sock. */
  readonly socketPath?: string | undefined;
  /** For sandboxes that name none. */
  readonly image?: string | undefined;
  /** Default false: images come from the operator, since a name is an address to connect to. */
  readonly allowPull?: boolean | undefined;
  /** Names a sandbox may ask for; default: any image the daemon has. */
  readonly allowedImages?: readonly string[] | undefined;
  readonly log?: ((line: LogLine) => void) | undefined;
}

/** Boxes as containers of a Docker daemon on this host. */
export class DockerBackend implements Backend {
  readonly name = "docker";
  readonly degradations: readonly string[];
  readonly #daemon: DockerDaemon;
  readonly #options: DockerOptions;
  readonly #policy: ImagePolicy;
  readonly #imageTrusts: ImageTrusts;
  /** Starts what reaches containers' ports; not before somebody uses one. */
  readonly #launcher: Launcher;
  readonly #boxes = new Set<DockerBox>();
  readonly #leftoverRoom = new DescriptorRoom(Math.floor(descriptorLimit() / 16));

  private constructor(daemon: DockerDaemon, info: DaemonInfo, perl: string | undefined, options: DockerOptions) {
    this.#daemon = daemon;
    this.#options = options;
    this.#imageTrusts = new ImageTrusts(daemon, options.instance);
    this.#policy = { allowPull: options.allowPull ?? false, allowedImages: options.allowedImages };
    this.#launcher = new Launcher({ perl: perl ?? "perl", log: options.log ?? (() => {}) });
    this.degradations = degradationsOf(info);
  }

  static async open(options: DockerOptions): Promise<DockerBackend> {
    if (options.image !== undefined) checkImageName(options.image);
    const socketPath = options.socketPath ?? socketFromEnvironment();
    const { daemon, info } = await connect(socketPath);
    const unmapped = info.SecurityOptions?.find((option) => /^name=(rootless|userns)/.test(option));
    if (info.OSType !== "linux" || unmapped !== undefined) {
      throw new IsolationError("RUNTIME_UNAVAILABLE", "this kind of Docker engine cannot show a guarded workspace", {
        hint: "use an engine on this Linux host that is neither rootless nor remaps users",
      });
    }
    return new DockerBackend(daemon, info, await findProgram("perl"), options);
  }

  async createBox(spec: BoxSpec, options: CreateOptions = {}): Promise<Box> {
    const name = spec.image ?? this.#options.image;
    if (name === undefined) throw invalid("a sandbox in Docker needs an image", "name one");
    const runtime = await this.#findRuntime(spec.ociRuntime);
    const log = this.#options.log ?? (() => {});
    const noPorts = reasonAgainstSockets(runtime.program);
    if (spec.network === "filtered" && noPorts !== undefined) throw noFilteredNetwork(noPorts);
    const egress = spec.network === "private" ? await EgressGuard.open(runtime.program, log) : undefined;
    const { signal, onProgress = () => {} } = options;
    const image = await findImage(this.#daemon, name, this.#policy, { signal, onProgress });
    const trust = spec.trust && (await this.#trust(spec.trust, spec, image));
    signal?.throwIfAborted();
    const box: DockerBox = new DockerBox({
      daemon: this.#daemon,
      instance: this.#options.instance,
      directory: join(this.#options.directory, spec.id),
      spec,
      image,
      trust,
      runtime: runtime.name,
      egress,
      launcher: this.#launcher,
      noPorts,
      leftoverRoom: this.#leftoverRoom,
      owner: pickBoxOwner(),
      log,
      onDestroyed: () => this.#boxes.delete(box),
    });
    this.#boxes.add(box);
    return box;
  }

  async removeOrphans(deadInstances: readonly string[]): Promise<void> {
    const removals = deadInstances.map((instance) => this.#removeContainersOf(instance));
    const failed = (await Promise.allSettled(removals)).find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const results = await Promise.allSettled([...this.#boxes].map((box) => box.destroy()));
    await this.#launcher.close();
    const failed = results.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  /** Programs of an image go on to believe whom it believes, and the sandbox's authority beside them. */
  async #trust(trust: TrustFiles, spec: BoxSpec, image: Image): Promise<TrustPlan> {
    const { bundle, stores } = await this.#imageTrusts.of(image);
    const seen = (paths: readonly string[]) => paths.filter((path) => showsImage(path, spec, image));
    return trustPlan(bundle === "" ? trust : trustFilesWith(bundle, trust), {
      bundles: seen(stores.bundles),
      java: seen(stores.java),
    });
  }

  async #removeContainersOf(instance: string): Promise<void> {
    const containers = await this.#daemon.get<readonly { Id: string }[]>("/containers/json", {
      query: { all: "true", filters: JSON.stringify({ label: [`${LABEL.instance}=${instance}`] }) },
    });
    for (const { Id } of containers) await removeContainer(this.#daemon, Id);
  }

  /** The daemon would say it too, but only when the container starts. */
  async #findRuntime(wanted: string | undefined): Promise<{ readonly name: string; readonly program: string }> {
    const { Runtimes, DefaultRuntime } = await this.#daemon.info();
    const name = wanted ?? DefaultRuntime;
    if (wanted === undefined || Object.hasOwn(Runtimes, name)) return { name, program: Runtimes[name]?.path ?? name };
    throw new IsolationError("RUNTIME_UNAVAILABLE", `the engine has no OCI runtime ${JSON.stringify(name)}`, {
      hint: `it has: ${Object.keys(Runtimes).sort().join(", ")}`,
    });
  }
}

function noFilteredNetwork(reason: string): IsolationError {
  return new IsolationError("RUNTIME_UNAVAILABLE", `a container cannot have a filtered network: ${reason}`, {
    hint: "use a server of root with runc, the runtime bwrap, or the network none",
  });
}

const DEFAULT_SOCKET = "/var/run/docker.sock";

function socketFromEnvironment(): string {
  const host = process.env.DOCKER_HOST ?? "";
  if (host === "") return DEFAULT_SOCKET;
  if (host.startsWith("unix://")) return host.slice("unix://".length) || DEFAULT_SOCKET;
  throw new IsolationError("RUNTIME_UNAVAILABLE", "DOCKER_HOST names an engine on another machine", {
    hint: "workspaces are mounts of this host: use an engine here, with DOCKER_HOST=unix://…",
  });
}

async function connect(socketPath: string): Promise<{ daemon: DockerDaemon; info: DaemonInfo }> {
  try {
    const daemon = await DockerDaemon.connect(socketPath);
    return { daemon, info: await daemon.info() };
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined;
    throw new IsolationError("RUNTIME_UNAVAILABLE", "no Docker engine answers", {
      hint:
        (cause as NodeJS.ErrnoException | undefined)?.code === "EACCES"
          ? "add the server's user to the group docker"
          : "start it (systemctl start docker), or name its socket in DOCKER_HOST=unix://…",
      cause: error,
    });
  }
}

function degradationsOf(info: DaemonInfo): string[] {
  return [
    ...(info.MemoryLimit ? [] : ["the Docker engine cannot limit memory on this host"]),
    ...(info.SwapLimit || !info.MemoryLimit
      ? []
      : ["the Docker engine cannot limit swap: a sandbox may use swap beyond its memory limit"]),
    ...(info.CpuCfsQuota ? [] : ["the Docker engine cannot limit CPU time on this host"]),
    ...(info.CPUShares ? [] : ["the Docker engine cannot weigh CPU time on this host"]),
    ...(info.PidsLimit ? [] : ["the Docker engine cannot limit the number of processes on this host"]),
  ];
}
