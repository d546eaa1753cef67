import type { HostFacts } from "../facts/facts.ts";
import { broken, doubtful, type Finding, fine } from "../finding.ts";
import { isAtLeast } from "../version.ts";

const OLDEST_NODE = "24";
/** openat2(2), without which no path of a workspace can be resolved safely. */
const OLDEST_KERNEL = "5.6";
const PASSTHROUGH_KERNEL = "6.9";

export function judgeNode({ nodeVersion }: Pick<HostFacts, "nodeVersion">): Finding {
  if (isAtLeast(nodeVersion, OLDEST_NODE)) return fine("node", `Node ${nodeVersion}`);
  return broken("node", `Node ${nodeVersion} is too old`, { fix: `install Node ${OLDEST_NODE} or newer` });
}

export function judgeKernel({ kernelRelease }: Pick<HostFacts, "kernelRelease">): Finding {
  if (isAtLeast(kernelRelease, OLDEST_KERNEL)) return fine("kernel", `Linux ${kernelRelease}`);
  const fix = `install Linux ${OLDEST_KERNEL} or newer, which has openat2`;
  return broken("kernel", `Linux ${kernelRelease} is too old`, { fix });
}

export function judgeFuseDevice({ fuseDevice }: Pick<HostFacts, "fuseDevice">): Finding {
  if (fuseDevice === "usable") return fine("fuse-device", "/dev/fuse can be opened");
  if (fuseDevice === "absent") {
    const fix = "load it with: modprobe fuse; in a container, start that with: --device /dev/fuse";
    return broken("fuse-device", "there is no /dev/fuse", { fix });
  }
  const fix =
    fuseDevice.error === "EACCES"
      ? "let users open it with: chmod 666 /dev/fuse"
      : "let the container have the device with: --device /dev/fuse --cap-add SYS_ADMIN";
  return broken("fuse-device", `/dev/fuse cannot be opened (${fuseDevice.error})`, { fix });
}

export function judgeFusermount({ isRoot, fusermount }: Pick<HostFacts, "isRoot" | "fusermount">): Finding {
  if (isRoot) return fine("fusermount3", "fusermount3 is not needed: root mounts by itself");
  if (fusermount === undefined) {
    return broken("fusermount3", "there is no fusermount3, which mounts for an ordinary user", {
      fix: "install the package fuse3",
    });
  }
  if (fusermount.setuid) return fine("fusermount3", `fusermount3 at ${fusermount.path}`);
  return broken("fusermount3", `${fusermount.path} is not setuid root, so it cannot mount for an ordinary user`, {
    fix: `chown root ${fusermount.path} && chmod u+s ${fusermount.path}`,
  });
}

type PassthroughFacts = Pick<HostFacts, "isRoot" | "kernelRelease" | "passthroughBuilt">;

export function judgePassthrough({ isRoot, kernelRelease, passthroughBuilt }: PassthroughFacts): Finding {
  const check = "fuse-passthrough";
  if (!isAtLeast(kernelRelease, PASSTHROUGH_KERNEL) || passthroughBuilt === false) {
    const fix = `works without, reads and writes are slower; Linux ${PASSTHROUGH_KERNEL} with CONFIG_FUSE_PASSTHROUGH has it`;
    return doubtful(check, "this kernel has no FUSE passthrough", { fix });
  }
  if (isRoot) return fine(check, "FUSE passthrough: the kernel reads and writes workspace files directly");
  return doubtful(check, "FUSE passthrough needs root", { fix: "works without, reads and writes are slower" });
}

const FILTERED_ARCHITECTURES = ["x64", "arm64"];

export function judgeSeccomp({
  seccompActions,
  architecture,
}: Pick<HostFacts, "seccompActions" | "architecture">): Finding {
  if (!FILTERED_ARCHITECTURES.includes(architecture)) {
    const fix = `run on ${FILTERED_ARCHITECTURES.join(" or ")}`;
    return broken("seccomp", `no system call filter is known for ${architecture}`, { fix, concerns: ["bwrap"] });
  }
  if (seccompActions.includes("errno")) return fine("seccomp", "seccomp filters work", ["bwrap"]);
  const fix = "use a kernel with CONFIG_SECCOMP_FILTER";
  return broken("seccomp", "the kernel has no seccomp filters", { fix, concerns: ["bwrap"] });
}
