import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { cleanStaleMount, MountHost, type WorkspaceEvent, type WorkspaceSpec } from "@agentfense/server/isolation";
import { readDeltaRecord, requireSameDirectory, writeDeltaRecord } from "../changes/kept-delta.ts";
import { CommandFailure, UsageError } from "../command-failure.ts";
import { chooseRules, type RulesValues } from "../rules.ts";
import { locateMountPoint, requireApart, resolveDelta } from "../run/placement.ts";
import { TemporaryDelta } from "../run/run-delta.ts";
import { StopSignals } from "../stop-signals.ts";
import { printable } from "../terminal.ts";
import { resolveDirectory } from "../workspace-directory.ts";

export interface MountValues extends RulesValues {
  readonly delta?: string | undefined;
  readonly quota?: number | undefined;
  readonly "quota-files"?: number | undefined;
  readonly owner?: { readonly uid: number; readonly gid: number } | undefined;
  readonly events?: boolean | undefined;
  readonly passthrough?: boolean | undefined;
  readonly xattrs?: boolean | undefined;
}

/** `agentfense mount` */
export async function mount(values: MountValues, given: readonly [string, string]): Promise<number> {
  using stop = new StopSignals();
  const request = await readRequest(values, given);
  const { directory, keptDelta, label } = request;
  const mountPoint = await freeMountPoint(request.mountPoint);
  await using temporary = keptDelta === undefined ? await TemporaryDelta.create() : undefined;
  const delta = keptDelta ?? temporary!.path;
  requireApart({ directory, mountPoint, delta });
  requireSameDirectory(delta, await readDeltaRecord(delta), directory);

  const { promise: lost, resolve: reportLost } = Promise.withResolvers<string>();
  const onEvent = (event: WorkspaceEvent): void => {
    if (request.events) process.stderr.write(`${JSON.stringify(event)}\n`);
    if (event.kind === "mount_lost") reportLost(event.reason);
  };
  await using host = await MountHost.start();
  const spec = { ...request.features, mountPoint, lowers: [directory], delta, rules: request.rules, onEvent };
  const workspace = await host.mount(spec).catch((error: Error & { readonly hint?: string }) => {
    throw new CommandFailure(`cannot mount at ${printable(mountPoint)}: ${error.message}`, { hint: error.hint });
  });

  // The delta is ours alone from here on.
  if (keptDelta !== undefined) {
    await writeDeltaRecord(delta, { directory, rules: request.rules, label }).catch(async (error: unknown) => {
      await workspace.unmount();
      throw error;
    });
  }

  const facts = [
    label,
    keptDelta === undefined ? "temporary delta" : `delta ${keptDelta}`,
    ...(workspace.features.passthrough ? ["passthrough"] : []),
  ];
  process.stdout.write(
    `agentfense: mounted ${printable(directory)} at ${printable(mountPoint)} (${facts.map(printable).join(", ")})\n`,
  );

  const lostReason = await Promise.race([stop.first.then(() => undefined), lost]);
  if (lostReason !== undefined) {
    process.stderr.write(
      `agentfense: the file system at ${printable(mountPoint)} was lost: ${printable(lostReason)}\n`,
    );
  }
  const unmounted = await Promise.race([workspace.unmount().then(() => true), stop.second.then(() => false)]);
  if (unmounted) return lostReason === undefined ? 0 : 1;

  process.stderr.write(`agentfense: detaching ${printable(mountPoint)} while it is in use\n`);
  await detach(mountPoint);
  await temporary?.[Symbol.asyncDispose]();
  // Closing the host would wait for the users of the mount. With the process its end of the connection goes, and they
  // get ENOTCONN.
  process.exit(1);
}

/** What the arguments ask for, checked as far as that goes without touching anything. */
async function readRequest(values: MountValues, [directory, mountPoint]: readonly [string, string]) {
  const { quota, "quota-files": quotaFiles, owner, passthrough, xattrs } = values;
  const features: Pick<WorkspaceSpec, "quota" | "owner" | "passthrough" | "xattrs"> = {
    quota: { ...(quota !== undefined && { bytes: quota }), ...(quotaFiles !== undefined && { files: quotaFiles }) },
    ...(owner !== undefined && { owner }),
    ...(passthrough !== undefined && { passthrough }),
    ...(xattrs !== undefined && { xattrs }),
  };
  const place = await resolveDirectory(directory);
  const { policy, label } = await chooseRules(values, place);
  return {
    directory: place,
    mountPoint,
    keptDelta: values.delta === undefined ? undefined : await resolveDelta(values.delta),
    rules: policy.rules,
    label,
    features,
    events: values.events === true,
  };
}

/** The mount point, after removing what a killed process may have left mounted there. */
async function freeMountPoint(path: string): Promise<string> {
  const located = await locateMountPoint(path);
  const removed = await cleanStaleMount(located).catch((error: NodeJS.ErrnoException) => {
    // A path that is not there is for the check below to name.
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return false;
    throw new CommandFailure(`cannot remove the dead mount at ${printable(located)}: ${error.message}`);
  });
  if (removed) process.stderr.write(`agentfense: removed a dead mount at ${printable(located)}\n`);
  const mountPoint = await resolveDirectory(path, "MOUNTPOINT");
  if (await hasFuseMount(mountPoint)) throw new UsageError(`something is already mounted at ${printable(mountPoint)}`);
  return mountPoint;
}

/** Takes a mount out of the tree at once, whoever still uses it: for when a clean unmount does not come to an end. */
async function detach(mountPoint: string): Promise<boolean> {
  for (const [command, ...args] of [
    ["fusermount3", "-u", "-z", "--", mountPoint],
    ["umount", "-l", "--", mountPoint],
  ] as const) {
    const child = spawn(command, args, { stdio: "ignore" });
    const exit = await Promise.race([once(child, "exit"), once(child, "error").then(() => [1])]);
    if (exit[0] === 0) return true;
  }
  return false;
}

/** Whether a FUSE file system is mounted exactly here (on top, as a lookup would meet it). */
async function hasFuseMount(mountPoint: string): Promise<boolean> {
  const table = await readFile("/proc/self/mountinfo", "utf8");
  const types = table
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      // proc(5): id parent major:minor root mount-point options optional-fields... "-" type source super-options
      const fields = line.split(" ");
      return { mountPoint: unescapeOctal(fields[4] ?? ""), type: fields[fields.indexOf("-", 6) + 1] ?? "" };
    })
    .filter((mount) => mount.mountPoint === mountPoint)
    .map(({ type }) => type);
  return types.at(-1)?.startsWith("fuse") ?? false;
}

/** The kernel writes space, tab, newline and backslash as three octal digits. */
function unescapeOctal(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_escape, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
