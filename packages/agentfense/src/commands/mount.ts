import { cleanStaleMount, MountHost, type WorkspaceEvent, type WorkspaceSpec } from "@agentfense/server/isolation";
import { readDeltaRecord, requireSameDirectory, writeDeltaRecord } from "../changes/delta-record.ts";
import { type Command, CommandFailure, type ExitCode, parseArguments, UsageError } from "../command.ts";
import { detach } from "../mount/detach.ts";
import { hasFuseMount } from "../mount/mount-table.ts";
import { locateMountPoint, requireApart, resolveDelta } from "../mount/placement.ts";
import { StopRequests } from "../mount/stop-requests.ts";
import { TemporaryDelta } from "../mount/temporary-delta.ts";
import { chooseRules, RULES_HELP, RULES_OPTIONS } from "../rules-option.ts";
import { parseByteSize, parseCount, parseOwner } from "../size.ts";
import { printable } from "../terminal.ts";
import { resolveDirectory } from "../workspace-directory.ts";

const HELP = `Usage: agentfense mount [OPTIONS] DIR MOUNTPOINT

Shows DIR at MOUNTPOINT as the rules allow, and keeps what is written there in a delta; DIR itself is never written.
Stays in the foreground and prints one line when ready. SIGINT or SIGTERM unmounts; a second one does not wait for
processes that still use the mount.

Rules:
${RULES_HELP}

Writes:
  --delta DIR       keep the changes here (made if absent); without it they go to a temporary directory and are lost at the end
  --quota SIZE      the most the delta may hold: 512m, 1g or bytes
  --quota-files N   the most entries the delta may hold

Other:
  --owner UID:GID   show every entry as owned by this user
  --events          print each refusal to stderr, one JSON object a line
  --no-passthrough  serve reads and writes here instead of letting the kernel go to the files directly
  --no-xattrs       no extended attributes
  -h, --help        this text
`;

const OPTIONS = {
  ...RULES_OPTIONS,
  delta: { type: "string" },
  quota: { type: "string" },
  "quota-files": { type: "string" },
  owner: { type: "string" },
  events: { type: "boolean" },
  passthrough: { type: "boolean" },
  xattrs: { type: "boolean" },
} as const;

export const mount: Command = { help: HELP, run };

async function run(args: readonly string[]): Promise<ExitCode> {
  using stop = new StopRequests();
  const request = await readRequest(args);
  const { directory, keptDelta, label } = request;
  const mountPoint = await freeMountPoint(request.mountPoint);
  await using temporary = keptDelta === undefined ? await TemporaryDelta.create() : undefined;
  const delta = keptDelta ?? temporary!.path;
  requireApart({ directory, mountPoint, delta });
  requireSameDirectory(delta, await readDeltaRecord(delta), directory);

  const { promise: lost, resolve: reportLost } = Promise.withResolvers<string>();
  const onEvent = (event: WorkspaceEvent): void => {
    if (request.events) process.stderr.write(`${JSON.stringify(event)}\n`);
    if (event.kind === "engine_lost") reportLost(event.reason);
  };
  await using host = await MountHost.start();
  const spec = { ...request.features, mountPoint, lowers: [directory], delta, rules: request.rules, onEvent };
  const workspace = await host.mount(spec).catch((error: Error) => {
    throw new CommandFailure(`cannot mount at ${printable(mountPoint)}: ${error.message}`);
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

  const lostReason = await Promise.race([stop.first, lost]);
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
async function readRequest(args: readonly string[]) {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const [directory, mountPoint, ...surplus] = positionals;
  if (directory === undefined || mountPoint === undefined || surplus.length > 0) {
    throw new UsageError(`mount takes DIR and MOUNTPOINT, not ${positionals.length} arguments`);
  }
  const { quota, "quota-files": quotaFiles, owner, passthrough, xattrs } = values;
  const features: Pick<WorkspaceSpec, "quota" | "owner" | "passthrough" | "xattrs"> = {
    quota: {
      ...(quota === undefined ? {} : { bytes: parseByteSize(quota, "--quota") }),
      ...(quotaFiles === undefined ? {} : { files: parseCount(quotaFiles, "--quota-files") }),
    },
    ...(owner === undefined ? {} : { owner: parseOwner(owner, "--owner") }),
    ...(passthrough === undefined ? {} : { passthrough }),
    ...(xattrs === undefined ? {} : { xattrs }),
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
