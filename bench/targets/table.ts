import { bindfs, fuseOverlayfs } from "./daemon.ts";
import { native } from "./native.ts";
import { type OurPlan, ours } from "./ours.ts";
import { overlayfs } from "./overlayfs.ts";
import type { Ground, Target } from "./target.ts";

export interface TargetKind {
  /** Heading of its column. */
  readonly label: string;
  /** `peer`: a FUSE file system to be compared with ours. */
  readonly family: "native" | "kernel" | "ours" | "peer";
  readonly needs: readonly ("root" | "fuse" | "user")[];
  /** The program without which it cannot be measured. */
  readonly program?: string;
  /** Left out unless named with --targets. */
  readonly onRequest?: true;
  readonly make: (ground: Ground) => Promise<Target>;
}

const configuration = (name: string, change: Partial<OurPlan>) => (ground: Ground) =>
  ours({ name, preset: "full-access", passthrough: true, asUser: false, writable: true, ...change }, ground);

/** Every target, in the order of the columns. */
export const TARGETS: Readonly<Record<string, TargetKind>> = {
  native: { label: "native", family: "native", needs: [], make: native },
  overlayfs: { label: "overlayfs", family: "kernel", needs: ["root"], make: overlayfs },
  ours: {
    label: "ours, passthrough",
    family: "ours",
    needs: ["root", "fuse"],
    make: configuration("ours", {}),
  },
  "ours-plain": {
    label: "ours, no passthrough",
    family: "ours",
    needs: ["root", "fuse"],
    make: configuration("ours-plain", { passthrough: false }),
  },
  "ours-user": {
    label: "ours, ordinary user",
    family: "ours",
    needs: ["fuse", "user"],
    make: configuration("ours-user", { passthrough: false, asUser: true }),
  },
  "ours-agent-safe": {
    label: "ours, agent-safe rules",
    family: "ours",
    needs: ["root", "fuse"],
    onRequest: true,
    make: configuration("ours-agent-safe", { preset: "agent-safe", writable: false }),
  },
  "fuse-overlayfs": {
    label: "fuse-overlayfs",
    family: "peer",
    needs: ["root", "fuse"],
    program: "fuse-overlayfs",
    make: fuseOverlayfs,
  },
  bindfs: { label: "bindfs", family: "peer", needs: ["root", "fuse"], program: "bindfs", make: bindfs },
};
