import type { LimitGroup } from "../limits/limits.ts";

// `ulimit` counts memory in KiB.
const SHELL_LIMIT = {
  data: (bytes: number) => `ulimit -d ${Math.max(1, Math.floor(bytes / 1024))}`,
  nproc: (count: number) => `ulimit -u ${count} 2>/dev/null || ulimit -p ${count}`,
} satisfies Record<LimitGroup["rlimits"][number]["resource"], (value: number) => string>;

/**
 * Where no control group can be had, each process takes on limits inside the box, where its user namespace counts on its
 * own, and then becomes the command. dash names the limit of processes `-p`, other shells `-u`.
 */
export function limitPrefix(rlimits: LimitGroup["rlimits"]): string[] {
  if (rlimits.length === 0) return [];
  const limits = rlimits.map(({ resource, value }) => SHELL_LIMIT[resource](value));
  const script = [
    ...limits,
    `if [ -x "$1" ] && [ ! -d "$1" ]; then exec "$@"; fi`,
    `echo "agentfense: cannot run $1" >&2`,
    "exit 127",
  ].join("\n");
  return ["/bin/sh", "-c", script, "sh"];
}
