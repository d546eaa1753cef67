import type { Log } from "../log.ts";
import type { Commands } from "./commands.ts";
import type { Homes } from "./homes.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { Clock, SandboxDefaults, SandboxesOptions } from "./options.ts";
import type { Pausing } from "./pausing.ts";
import type { SandboxRegistry } from "./registry.ts";
import type { Resident } from "./resident.ts";
import type { Sessions } from "./sessions.ts";
import type { Sync } from "./sync.ts";
import type { Witness } from "./witness.ts";

/** What the parts of the sandboxes share: what they were opened with, and each other. */
export interface Parts extends Omit<SandboxesOptions, "defaults" | "clock" | "log"> {
  readonly defaults: SandboxDefaults;
  readonly clock: Clock;
  readonly log: Log;
  readonly registry: SandboxRegistry;
  readonly lifecycle: Lifecycle;
  readonly commands: Commands;
  readonly sessions: Sessions;
  readonly pausing: Pausing;
  readonly homes: Homes;
  readonly sync: Sync;
  readonly witness: Witness;
  /** The directory of a sandbox's changes. */
  deltaOf(resident: Pick<Resident, "id">): string;
}
