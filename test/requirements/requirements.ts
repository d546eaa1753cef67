import { DISCOVERY } from "./discovery.ts";
import { ESCAPES } from "./escapes.ts";
import { INTERFACE } from "./interface.ts";
import { LAYERS } from "./layers.ts";
import { NETWORK } from "./network.ts";
import { PERMISSIONS } from "./permissions.ts";
import { PROTECTION } from "./protection.ts";
import type { Requirement } from "./requirement.ts";
import { RESOURCES } from "./resources.ts";
import { SYNCHRONISATION } from "./synchronisation.ts";
import { VIEWING } from "./viewing.ts";

/** Everything that has to have a proof. */
export const REQUIREMENTS: readonly Requirement[] = [
  ...PERMISSIONS,
  ...LAYERS,
  ...DISCOVERY,
  ...VIEWING,
  ...PROTECTION,
  ...ESCAPES,
  ...RESOURCES,
  ...INTERFACE,
  ...SYNCHRONISATION,
  ...NETWORK,
];
