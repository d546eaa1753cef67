import { isAtLeast } from "./version.ts";

/**
 * GHSA-pxhw-h44j-8pfx (CVE-2026-87766), published 2026-08-26: while it sets a sandbox up, before anything runs in it, bwrap
 * below 0.12.0 follows symlinks in the directories it creates mount points in, and can so create files and directories of
 * the host as the user who started it. What it takes is content under the attacker's control above such a mount point.
 */
export const SETUP_ESCAPE = { id: "GHSA-pxhw-h44j-8pfx", fixedUpstream: "0.12.0" } as const;

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
