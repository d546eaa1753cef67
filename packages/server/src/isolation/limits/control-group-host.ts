import { join } from "node:path";
import { SandboxError } from "../backend/errors.ts";
import type { ResourceLimits } from "../backend/limits.ts";
import { type ControlGroup, makeControlGroup } from "./control-group.ts";
import { errorCode } from "./files.ts";
import type { Hierarchy } from "./hierarchies.ts";
import type { LimitGroup, LimitHost } from "./limits.ts";
import { removeInstances } from "./orphans.ts";
import { type Parent, removeParent } from "./parents.ts";
import { degradationsWithout, standIns } from "./rlimits.ts";
import { LIMITING } from "./settings.ts";
import { validateLimits, validateName } from "./validate.ts";

export interface ControlGroupHostOptions {
  readonly instance: string;
  /** In the order in which processes enter: the one that can kill everybody first. */
  readonly parents: readonly Parent[];
  /** Where dead instances may have left something. */
  readonly hierarchies: readonly Hierarchy[];
  /** Why controllers may be missing and what the operator can do, one sentence. */
  readonly remedy: string;
  readonly log: (line: string) => void;
}

/** A host with control groups; controllers that are missing are stood in for by rlimits, and said. */
export class ControlGroupHost implements LimitHost {
  readonly kind: "cgroup-v1" | "cgroup-v2";
  readonly degradations: readonly string[];
  readonly #options: ControlGroupHostOptions;
  readonly #missing: readonly (typeof LIMITING)[number][];
  readonly #groups = new Set<ControlGroup>();

  constructor(options: ControlGroupHostOptions) {
    const { parents, remedy } = options;
    this.#options = options;
    this.kind = parents.some(({ version }) => version === 1) ? "cgroup-v1" : "cgroup-v2";
    this.#missing = LIMITING.filter((wanted) => !parents.some(({ controllers }) => controllers.includes(wanted)));
    this.degradations = degradationsWithout(this.#missing, remedy);
  }

  async createGroup(id: string, limits: ResourceLimits): Promise<LimitGroup> {
    validateName("group", id);
    validateLimits(limits);
    const places = this.#options.parents.map(({ version, controllers, directory }) => ({
      version,
      controllers,
      directory: join(directory, id),
    }));
    const group = await makeControlGroup(places, limits, standIns(this.#missing, limits), () =>
      this.#groups.delete(group),
    );
    this.#groups.add(group);
    return group;
  }

  async removeOrphans(deadInstances: readonly string[]): Promise<void> {
    for (const instance of deadInstances) validateName("instance", instance);
    if (deadInstances.includes(this.#options.instance)) {
      throw new SandboxError("INVALID_ARGUMENT", "this instance is alive and no orphan");
    }
    await removeInstances(this.#options.hierarchies, deadInstances);
  }

  async close(): Promise<void> {
    const failures: unknown[] = [];
    for (const group of this.#groups) await group.remove().catch((error: unknown) => failures.push(error));
    for (const parent of this.#options.parents.toReversed()) {
      await removeParent(parent).catch((error: unknown) => {
        // Somebody else put something into it, and it is theirs to remove.
        if (errorCode(error) === "EBUSY") this.#options.log(`${parent.directory} is not empty and stays`);
        else failures.push(error);
      });
    }
    if (failures.length > 0) throw new AggregateError(failures, "control groups could not be removed");
  }
}
