import { PERL_PACKAGE } from "../backend/find-program.ts";
import { type HostFacts, type NamespaceFacts, NETWORK_HELPERS } from "./facts.ts";

/** The verdicts on a host, in the order in which they are read best: what everything needs first. */
export function judgeHost(facts: HostFacts): readonly Finding[] {
  return JUDGEMENTS.map((judge) => judge(facts));
}

const JUDGEMENTS: readonly ((facts: HostFacts) => Finding)[] = [
  judgeNode,
  judgeKernel,
  judgeFuseDevice,
  judgeFusermount,
  judgePassthrough,
  judgeBwrap,
  judgeNamespaces,
  judgeNamespaceMaximum,
  judgeApparmor,
  judgeSeccomp,
  judgeLimits,
  judgePerl,
  judgeSetpriv,
  judgeNetworkHelper,
  judgeDocker,
];

const OLDEST_NODE = "24";
/** openat2(2), without which no path of a workspace can be resolved safely. */
const OLDEST_KERNEL = "5.6";
const PASSTHROUGH_KERNEL = "6.9";

function judgeNode({ nodeVersion }: HostFacts): Finding {
  if (isAtLeast(nodeVersion, OLDEST_NODE)) return fine("node", `Node ${nodeVersion}`);
  return broken("node", `Node ${nodeVersion} is too old`, `install Node ${OLDEST_NODE} or newer`);
}

function judgeKernel({ kernelRelease }: HostFacts): Finding {
  if (isAtLeast(kernelRelease, OLDEST_KERNEL)) return fine("kernel", `Linux ${kernelRelease}`);
  const fix = `install Linux ${OLDEST_KERNEL} or newer, which has openat2`;
  return broken("kernel", `Linux ${kernelRelease} is too old`, fix);
}

export function judgeFuseDevice({ fuseDevice }: Pick<HostFacts, "fuseDevice">): Finding {
  if (fuseDevice === "usable") return fine("fuse-device", "/dev/fuse can be opened");
  if (fuseDevice === "absent") {
    const fix = "load it with: modprobe fuse; in a container, start that with: --device /dev/fuse";
    return broken("fuse-device", "there is no /dev/fuse", fix);
  }
  const fix =
    fuseDevice.error === "EACCES"
      ? "let users open it with: chmod 666 /dev/fuse"
      : "let the container have the device with: --device /dev/fuse --cap-add SYS_ADMIN";
  return broken("fuse-device", `/dev/fuse cannot be opened (${fuseDevice.error})`, fix);
}

function judgeFusermount({ isRoot, fusermount }: HostFacts): Finding {
  if (isRoot) return fine("fusermount3", "fusermount3 is not needed: root mounts by itself");
  if (fusermount === undefined) {
    const summary = "there is no fusermount3, which mounts for an ordinary user";
    return broken("fusermount3", summary, "install the package fuse3");
  }
  if (fusermount.setuid) return fine("fusermount3", `fusermount3 at ${fusermount.path}`);
  const summary = `${fusermount.path} is not setuid root, so it cannot mount for an ordinary user`;
  return broken("fusermount3", summary, `chown root ${fusermount.path} && chmod u+s ${fusermount.path}`);
}

function judgePassthrough({ isRoot, kernelRelease, passthroughBuilt }: HostFacts): Finding {
  const check = "fuse-passthrough";
  if (!isAtLeast(kernelRelease, PASSTHROUGH_KERNEL) || passthroughBuilt === false) {
    const fix = `works without, reads and writes are slower; Linux ${PASSTHROUGH_KERNEL} with CONFIG_FUSE_PASSTHROUGH has it`;
    return doubtful(check, "this kernel has no FUSE passthrough", fix);
  }
  if (isRoot) return fine(check, "FUSE passthrough: the kernel reads and writes workspace files directly");
  return doubtful(check, "FUSE passthrough needs root", "works without, reads and writes are slower");
}

const FILTERED_ARCHITECTURES = ["x64", "arm64"];

function judgeSeccomp({ seccompActions, architecture }: HostFacts): Finding {
  if (!FILTERED_ARCHITECTURES.includes(architecture)) {
    const fix = `run on ${FILTERED_ARCHITECTURES.join(" or ")}`;
    return broken("seccomp", `no system call filter is known for ${architecture}`, fix, BWRAP);
  }
  if (seccompActions.includes("errno")) return fine("seccomp", "seccomp filters work", BWRAP);
  const fix = "use a kernel with CONFIG_SECCOMP_FILTER";
  return broken("seccomp", "the kernel has no seccomp filters", fix, BWRAP);
}

const BWRAP: readonly RealRuntime[] = ["bwrap"];
const INSTALL_BWRAP = "install the package bubblewrap";

function judgeBwrap({ bwrap }: HostFacts): Finding {
  if (bwrap === undefined) return broken("bwrap", "there is no bwrap", INSTALL_BWRAP, BWRAP);
  const { path, version, package: origin } = bwrap;
  if (version === undefined) return broken("bwrap", `${path} does not tell its version`, INSTALL_BWRAP, BWRAP);
  const name = `bwrap ${version}${origin === undefined ? "" : ` (package ${origin.version})`}`;
  const safe = reasonSafeFromSetupEscape(version, origin?.kind === "dpkg" ? origin.version : undefined);
  if (safe !== undefined) return fine("bwrap", `${name}, without ${SETUP_ESCAPE.id} (${safe})`, BWRAP);
  const summary = `${name} may have ${SETUP_ESCAPE.id}: setting up follows symlinks out of the box`;
  const fix = `install bubblewrap ${SETUP_ESCAPE.fixedUpstream} or newer; until then no --root or --read-only-path that others may write`;
  return doubtful("bwrap", summary, fix, BWRAP);
}

/** Whether a box can be made at all, and if not, which of the usual obstacles it is. */
function judgeNamespaces({ namespaces, isRoot }: HostFacts): Finding {
  const check = "user-namespaces";
  const { attempt } = namespaces;
  if (attempt === undefined) return doubtful(check, "not tried: there is no bwrap", INSTALL_BWRAP, BWRAP);
  if (attempt.works)
    return fine(check, `a box with namespaces of its own can be made${isRoot ? "" : " as this user"}`, BWRAP);
  return broken(check, `no box can be made: ${attempt.message}`, fixForNamespaces(namespaces), BWRAP);
}

function fixForNamespaces(namespaces: NamespaceFacts): string {
  if (namespaces.maxUserNamespaces === 0) return RAISE_MAXIMUM;
  if (namespaces.unprivilegedClone === false) return "sudo sysctl -w kernel.unprivileged_userns_clone=1";
  if (namespaces.apparmor.restricted) return apparmorFix(namespaces.apparmor);
  return "in a container, allow user namespaces and mounts: --security-opt seccomp=unconfined --security-opt systempaths=unconfined";
}

const RAISE_MAXIMUM = "sudo sysctl -w user.max_user_namespaces=15000 (and the same in /etc/sysctl.d/ to keep it)";

function judgeNamespaceMaximum({ namespaces }: HostFacts): Finding {
  const check = "max-user-namespaces";
  const maximum = namespaces.maxUserNamespaces;
  if (maximum === undefined) {
    const fix = "use a kernel with CONFIG_USER_NS";
    return broken(check, "the kernel has no user namespaces", fix, BWRAP);
  }
  if (maximum > 0) return fine(check, `up to ${maximum} user namespaces`, BWRAP);
  return broken(check, "user namespaces are switched off (user.max_user_namespaces is 0)", RAISE_MAXIMUM, BWRAP);
}

/** A restriction that a profile lifts for bwrap is no obstacle; whether it really is lifted, the attempt tells. */
function judgeApparmor({ namespaces }: HostFacts): Finding {
  const check = "apparmor";
  const { apparmor, attempt } = namespaces;
  if (!apparmor.restricted) return fine(check, "AppArmor does not restrict user namespaces", BWRAP);
  const works = attempt?.works === true;
  if (apparmor.profile !== undefined || works) {
    return fine(check, `AppArmor restricts user namespaces; ${apparmor.profile ?? "bwrap is let through"}`, BWRAP);
  }
  const summary = "AppArmor restricts user namespaces and has no profile for bwrap";
  return broken(check, summary, apparmorFix(apparmor), BWRAP);
}

function apparmorFix({ spareProfile }: NamespaceFacts["apparmor"]): string {
  if (spareProfile !== undefined) {
    return `sudo cp ${spareProfile} /etc/apparmor.d/ && sudo systemctl reload apparmor`;
  }
  const profile = "abi <abi/4.0>,\\nprofile bwrap /usr/bin/bwrap flags=(unconfined) {\\n  userns,\\n}\\n";
  return `printf '${profile}' | sudo tee /etc/apparmor.d/bwrap && sudo systemctl reload apparmor`;
}

function judgeLimits({ limits, isRoot }: HostFacts): Finding {
  const check = "limits";
  if ("error" in limits) {
    return doubtful(check, `limits cannot be enforced: ${limits.error}`, howToDelegate(isRoot), BWRAP);
  }
  if (limits.degradations.length === 0) return fine(check, `limits are enforced by ${limits.kind}`, BWRAP);
  // The last sentence is what to do about the others.
  const gaps = limits.degradations.slice(0, -1).map((sentence) => sentence.replace(/\.$/, ""));
  const fix = limits.degradations.at(-1)?.replace(/\.$/, "") ?? howToDelegate(isRoot);
  return doubtful(check, `limits are weaker here, by ${limits.kind}: ${gaps.join("; ")}`, fix, BWRAP);
}

function howToDelegate(isRoot: boolean): string {
  return isRoot
    ? "mount cgroup v2 with the controllers memory, cpu and pids, writable"
    : "start it in a delegated group: systemd-run --user --scope -p Delegate=yes agentfense …";
}

function judgePerl({ perl }: HostFacts): Finding {
  if (perl !== undefined) return fine("perl", `perl at ${perl}`, BWRAP);
  return broken(
    "perl",
    "there is no perl, which starts the boxes and their commands",
    `install the package ${PERL_PACKAGE}`,
    BWRAP,
  );
}

function judgeSetpriv({ setpriv, isRoot }: HostFacts): Finding {
  if (setpriv !== undefined) return fine("setpriv", `setpriv at ${setpriv}`, BWRAP);
  if (!isRoot) return fine("setpriv", "setpriv is not needed: only root has a user to leave", BWRAP);
  const summary = "there is no setpriv, with which root becomes an ordinary user";
  return broken("setpriv", summary, "install the package util-linux", BWRAP);
}

function judgeNetworkHelper({ networkHelpers }: HostFacts): Finding {
  const missing = Object.entries(NETWORK_HELPERS).filter(([program]) => !networkHelpers.includes(program));
  if (missing.length === 0) return fine("network-helper", "a private network can be made with pasta", BWRAP);
  const fix = `only for --network: install ${missing.map(([, name]) => name).join(", ")}`;
  const programs = missing.map(([program]) => program).join(", ");
  return doubtful("network-helper", `a private network cannot be made without ${programs}`, fix, BWRAP);
}

/** Docker is a choice: without an engine everything else works, so this is never worse than a warning. */
function judgeDocker({ docker }: HostFacts): Finding {
  if (docker.reachable) {
    const { version, runtimes, cgroupDriver, cgroupVersion } = docker;
    const summary = `Docker ${version}, runtimes ${runtimes.join(", ")}, cgroup v${cgroupVersion} by ${cgroupDriver}`;
    return fine("docker", summary, ["docker"]);
  }
  const summary = `no Docker engine answers at ${docker.socket} (${docker.error})`;
  const fix = DOCKER_FIXES[docker.error] ?? "only for --runtime docker: check the engine with: docker info";
  return { ...doubtful("docker", summary, fix, ["docker"]), blocks: ["docker"] };
}

const DOCKER_FIXES: Readonly<Record<string, string>> = {
  "on another machine": "only for --runtime docker: use an engine of this machine, DOCKER_HOST=unix://…",
  ENOENT: "only for --runtime docker: install and start an engine (package docker.io)",
  ECONNREFUSED: "only for --runtime docker: start the engine with: sudo systemctl start docker",
  EACCES:
    "only for --runtime docker: let this user use the engine with: sudo usermod -aG docker $USER (it makes them root)",
};

/**
 * GHSA-pxhw-h44j-8pfx (CVE-2026-87766), published 2026-08-26: while it sets a sandbox up, before anything runs in it, bwrap
 * below 0.12.0 follows symlinks in the directories it creates mount points in, and can so create files and directories of
 * the host as the user who started it. What it takes is content under the attacker's control above such a mount point.
 */
const SETUP_ESCAPE = { id: "GHSA-pxhw-h44j-8pfx", fixedUpstream: "0.12.0" } as const;

/**
 * Packages of older versions that carry the fix. Exact versions, no floors: Ubuntu published the fix with USN-8779-1 and took
 * it back the next day with USN-8779-2 (…ubuntu0.3), because it broke Flatpak. No fixed package of Debian 11, 12 or 13 is
 * known here: 0.8.0-2+deb12u1 is older than the advisory, and 0.11.0-2+deb13u1 fixes another one (CVE-2026-41163).
 */
const FIXED_PACKAGES: readonly { readonly version: string; readonly source: string }[] = [
  { version: "0.6.1-1ubuntu0.2", source: "USN-8779-1" },
  { version: "0.9.0-1ubuntu0.2", source: "USN-8779-1" },
  { version: "0.11.1-1ubuntu0.2", source: "USN-8779-1" },
];

/** Why this bwrap does not have the flaw; undefined when it has it, or nobody can tell. */
export function reasonSafeFromSetupEscape(version: string, packageVersion: string | undefined): string | undefined {
  if (isAtLeast(version, SETUP_ESCAPE.fixedUpstream)) return `${SETUP_ESCAPE.fixedUpstream} or newer`;
  return FIXED_PACKAGES.find((fixed) => fixed.version === packageVersion)?.source;
}

/** Whether a version is at least another; one that cannot be read is not. */
export function isAtLeast(version: string, floor: string): boolean {
  const have = versionNumbers(version);
  if (have.length === 0) return false;
  for (const [index, wanted] of versionNumbers(floor).entries()) {
    const number = have[index] ?? 0;
    if (number !== wanted) return number > wanted;
  }
  return true;
}

/** The leading numbers of a version: "6.18.44-rc1" is 6, 18, 44. Empty when it begins otherwise. */
function versionNumbers(text: string): readonly number[] {
  const [numbers = ""] = /^v?\d+(?:\.\d+)*/.exec(text) ?? [];
  return numbers === "" ? [] : numbers.replace(/^v/, "").split(".").map(Number);
}

/** The runtimes that really keep something apart. */
export type RealRuntime = "bwrap" | "docker";

/** One line of the doctor's report. */
export interface Finding {
  /** A stable name for programs: "kernel", "user-namespaces". */
  readonly check: string;
  /** `warning`: something is weaker, slower or optional. `failure`: something that is needed does not work. */
  readonly verdict: "ok" | "warning" | "failure";
  /** What is there. */
  readonly summary: string;
  /** What to do about it, in one line; absent when all is well. */
  readonly fix?: string;
  /** The runtimes this check is about; a finding about neither alone names both. */
  readonly concerns: readonly RealRuntime[];
  /** The runtimes that do not work because of this. Empty: they work all the same. */
  readonly blocks: readonly RealRuntime[];
}

const BOTH: readonly RealRuntime[] = ["bwrap", "docker"];

/** The runtimes nothing stands in the way of. */
export function workingRuntimes(findings: readonly Finding[]): RealRuntime[] {
  const blocked = new Set(findings.flatMap(({ blocks }) => blocks));
  return BOTH.filter((runtime) => !blocked.has(runtime));
}

function fine(check: string, summary: string, concerns: readonly RealRuntime[] = BOTH): Finding {
  return { check, verdict: "ok", summary, concerns, blocks: [] };
}

function doubtful(check: string, summary: string, fix: string, concerns: readonly RealRuntime[] = BOTH): Finding {
  return { check, verdict: "warning", summary, fix, concerns, blocks: [] };
}

/** A failure blocks what it concerns. */
function broken(check: string, summary: string, fix: string, concerns: readonly RealRuntime[] = BOTH): Finding {
  return { check, verdict: "failure", summary, fix, concerns, blocks: concerns };
}
