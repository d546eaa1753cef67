import { type BoxSpec, EMAIL, HOME, type NetworkMode } from "../backend/backend.ts";
import type { Owner } from "../filesystem/presentation.ts";
import { NAME_SERVER } from "../network/names.ts";
import { dockerSeccompProfile } from "../seccomp/profile.ts";
import type { Image } from "./image.ts";

export const LABEL = { instance: "agentfense.instance", sandbox: "agentfense.sandbox" } as const;

const CPU_PERIOD_MICROS = 100_000;
const RUN_BYTES = 16 * 1024 * 1024;
const OPEN_FILES = 16_384;
/** docker-init and the script. */
export const PIDS_PER_COMMAND = 2;
/** Ours in every box: process 1, what keeps it alive, the helper, and what one command needs. */
const OWN_PIDS = 3 + PIDS_PER_COMMAND;
const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** What every box gets; what the image and the caller say comes over it. */
const ENVIRONMENT = { HOME, USER: "agent", LOGNAME: "agent", EMAIL, LANG: "C.UTF-8", TERM: "xterm-256color" };

// `private` is the daemon's own bridge: a network behind address translation, with the daemon's name servers. What of it a
// box may reach is decided when the container has started (see egress.ts). In a `filtered` one the server answers, names too.
const NETWORKS = {
  none: "none",
  filtered: "none",
  private: "bridge",
  host: "host",
} satisfies Record<NetworkMode, string>;

/** What the daemon hides by itself, in old versions and new ones, and what it leaves readable for no good reason. */
const MASKED_PATHS = [
  "/proc/acpi",
  "/proc/asound",
  "/proc/config.gz",
  "/proc/interrupts",
  "/proc/kallsyms",
  "/proc/kcore",
  "/proc/keys",
  "/proc/key-users",
  "/proc/kmsg",
  "/proc/latency_stats",
  "/proc/modules",
  "/proc/sched_debug",
  "/proc/scsi",
  "/proc/timer_list",
  "/proc/timer_stats",
  "/sys/devices/virtual/dmi",
  "/sys/devices/virtual/powercap",
  "/sys/firmware",
  "/sys/kernel",
  "/sys/module",
];

const READ_ONLY_PATHS = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

export interface ContainerPlan {
  readonly name: string;
  /** The body of the daemon's "create a container". */
  readonly config: object;
  /** The limit on all processes, with ours. */
  readonly pidsLimit: number | undefined;
}

/**
 * The container of a box. All of it is decided here: nothing of an image (user, volumes, health check, entry point) and
 * nothing of a request can add a privilege, a device, a mount or a namespace of the host.
 *
 * Process 1 belongs to a user of its own, the keeper, so that a command which kills everything it may does not end the box.
 */
export function containerPlan(options: {
  readonly instance: string;
  readonly spec: BoxSpec;
  readonly image: Image;
  readonly owner: Owner;
  readonly keeper: Owner;
  /** Files of the host to lay over what the image has there. */
  readonly laid: readonly { readonly source: string; readonly target: string }[];
}): ContainerPlan {
  const { instance, spec, image, owner, keeper, laid } = options;
  const pidsLimit = spec.limits.pids === undefined ? undefined : spec.limits.pids + OWN_PIDS;
  return {
    name: `agentfense-${instance}-${spec.id}`,
    pidsLimit,
    config: {
      Image: image.id,
      Labels: { [LABEL.instance]: instance, [LABEL.sandbox]: spec.id },
      User: `${keeper.uid}:${keeper.gid}`,
      Hostname: spec.hostname,
      Entrypoint: ["/bin/sh", "-c", "exec sleep 2147483647"],
      Cmd: [],
      WorkingDir: "/",
      Env: Object.entries("PATH" in image.env ? ENVIRONMENT : { PATH: DEFAULT_PATH, ...ENVIRONMENT }).map(
        ([name, value]) => `${name}=${value}`,
      ),
      Healthcheck: { Test: ["NONE"] },
      AttachStdin: false,
      AttachStdout: false,
      AttachStderr: false,
      OpenStdin: false,
      Tty: false,
      HostConfig: {
        ...confinement(spec),
        ...limits(spec),
        ...(pidsLimit === undefined ? {} : { PidsLimit: pidsLimit }),
        Mounts: [...spec.mounts.map(bind), ...laid.map((file) => ({ ...bind(file), ReadOnly: true }))],
        Tmpfs: temporaryFileSystems(spec, image, owner),
        ShmSize: spec.tmpBytes,
      },
    },
  };
}

function bind({ source, target }: { readonly source: string; readonly target: string }): object {
  // Neither what is mounted below it later, on the host, nor what is below it now comes along.
  return { Type: "bind", Source: source, Target: target, BindOptions: { Propagation: "rprivate", NonRecursive: true } };
}

/** Whether a box sees there what the image has. */
export function showsImage(path: string, spec: BoxSpec, image: Image): boolean {
  const over = [...spec.mounts.map(({ target }) => target), ...image.volumes, ...TEMPORARY, "/proc", "/sys", "/dev"];
  return !over.some((place) => path === place || path.startsWith(`${place}/`));
}

function confinement(spec: BoxSpec): object {
  return {
    Privileged: false,
    CapDrop: ["ALL"],
    CapAdd: [],
    SecurityOpt: ["no-new-privileges:true", `seccomp=${JSON.stringify(dockerSeccompProfile())}`],
    ReadonlyRootfs: true,
    MaskedPaths: MASKED_PATHS,
    ReadonlyPaths: READ_ONLY_PATHS,
    NetworkMode: NETWORKS[spec.network],
    ...(spec.network === "filtered" ? { Dns: [NAME_SERVER], DnsSearch: ["."] } : {}),
    IpcMode: "private",
    PidMode: "",
    UTSMode: "",
    CgroupnsMode: "private",
    Devices: [],
    Init: true,
    RestartPolicy: { Name: "no" },
    AutoRemove: false,
    LogConfig: { Type: "none" },
    ...(spec.ociRuntime === undefined ? {} : { Runtime: spec.ociRuntime }),
  };
}

function limits(spec: BoxSpec): object {
  const { memoryBytes, cpuQuota, cpuShares } = spec.limits;
  return {
    // Equal values: memory and swap together, so none of it is swap.
    ...(memoryBytes === undefined ? {} : { Memory: memoryBytes, MemorySwap: memoryBytes }),
    ...(cpuQuota === undefined ? {} : { CpuQuota: cpuQuota, CpuPeriod: CPU_PERIOD_MICROS }),
    ...(cpuShares === undefined ? {} : { CpuShares: cpuShares }),
    // When the host runs out of memory the boxes go first. It is their lower bound as well where the daemon has CAP_SYS_RESOURCE.
    OomScoreAdj: 500,
    Ulimits: [
      { Name: "core", Soft: 0, Hard: 0 },
      { Name: "nofile", Soft: OPEN_FILES, Hard: OPEN_FILES },
    ],
  };
}

/** Everything that can be written besides the workspace and the home: in memory, charged to the box, bounded in bytes and in files. */
function temporaryFileSystems(spec: BoxSpec, image: Image, owner: Owner): Record<string, string> {
  // Where the image has the directory, runc gives it the image's mode, whatever is asked for: so it belongs to the box's user.
  const own = (bytes: number, mode = "0700") => tmpfs(bytes, `mode=${mode},uid=${owner.uid},gid=${owner.gid}`);
  const taken = new Set(spec.mounts.map(({ target }) => target));
  return {
    // An image's volumes would be directories of the host's disk without any limit.
    ...Object.fromEntries(image.volumes.filter((path) => !taken.has(path)).map((path) => [path, own(spec.tmpBytes)])),
    "/tmp": own(spec.tmpBytes, "1777"),
    "/var/tmp": own(spec.tmpBytes, "1777"),
    "/run": own(RUN_BYTES),
  } satisfies Record<(typeof TEMPORARY)[number], string>;
}

const TEMPORARY = ["/tmp", "/var/tmp", "/run"] as const;

const BYTES_PER_FILE = 4096;

function tmpfs(bytes: number, rest: string): string {
  return `rw,exec,nosuid,nodev,size=${bytes},nr_inodes=${Math.max(1024, Math.ceil(bytes / BYTES_PER_FILE))},${rest}`;
}
