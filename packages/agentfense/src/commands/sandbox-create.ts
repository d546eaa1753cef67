import type { ResourceLimitsSchema } from "@agentfense/protocol/sandbox";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { ALLOW_HELP, ALLOW_OPTIONS, listedHosts } from "../network-option.ts";
import { parseAssignments } from "../remote/assignments.ts";
import { remoteCommand } from "../remote/command.ts";
import { listMessage } from "../remote/network.ts";
import { chooseRemoteRules, REMOTE_RULES_HELP, REMOTE_RULES_OPTIONS } from "../remote/rules.ts";
import { showSandbox } from "../remote/sandbox-view.ts";
import { parseVersion } from "../remote/version.ts";
import { NETWORKS, RUNTIMES, SYNC_MODES, valueFor } from "../remote/words.ts";
import { parseCpuQuota, parseDuration, parseEnvironment } from "../run/quantities.ts";
import { parseByteSize, parseCount } from "../size.ts";

const DEFAULT_PRESET = "agent-safe";

const HELP = `Usage: agentfense sandbox create [OPTIONS] CODEBASE

Makes a sandbox on a codebase. Without rules it gets the preset ${DEFAULT_PRESET}.

Rules:
${REMOTE_RULES_HELP}
  --revocable       later rule changes reach files that are already open

Sandbox:
  --start           start it at once
  --version N       on version N of the codebase (default: always the newest)
  --sync MODE       when changes go to the codebase: on-exec (after each command), manual or never
  --runtime NAME    bwrap or docker (default: the server's)
  --image NAME      docker: the image
  --network MODE    none (default), filtered, private or host, as far as the server allows
${ALLOW_HELP}
  --env NAME=VALUE  a variable for every command (may be repeated); NAME alone passes on the one here
  --home NAME       a home (~) that outlives the sandbox, made when it is first used; one sandbox at a time runs with it
  --label NAME=VALUE  kept with it (may be repeated)
  --idle-pause TIME  pause it when nothing was asked of it for 10m …, until the next command (default: the server's)
  --expires TIME    destroy it after 30m, 24h … (default: the server's)

Limits:
  --memory SIZE     512m, 1g …
  --cpus NUMBER     0.5, 2 …
  --pids NUMBER     processes and threads together
  --disk SIZE       the most the changes and the home may take together
`;

const OPTIONS = {
  ...REMOTE_RULES_OPTIONS,
  revocable: { type: "boolean" },
  start: { type: "boolean" },
  version: { type: "string" },
  sync: { type: "string" },
  runtime: { type: "string" },
  image: { type: "string" },
  network: { type: "string" },
  ...ALLOW_OPTIONS,
  env: { type: "string", multiple: true },
  home: { type: "string" },
  label: { type: "string", multiple: true },
  "idle-pause": { type: "string" },
  expires: { type: "string" },
  memory: { type: "string" },
  cpus: { type: "string" },
  pids: { type: "string" },
  disk: { type: "string" },
} as const;

export const sandboxCreate = remoteCommand({
  name: "sandbox create",
  help: HELP,
  options: OPTIONS,
  takes: ["CODEBASE"],
  async run({ server, values, given: [codebaseId], json }) {
    const rules = (await chooseRemoteRules(values)) ?? { preset: DEFAULT_PRESET, permissions: [] };
    const request = {
      codebaseId,
      ...rules,
      codebaseVersion: parseVersion(values.version, "--version"),
      revocable: values.revocable === true,
      sync: valueFor(SYNC_MODES, values.sync, "--sync"),
      runtime: valueFor(RUNTIMES, values.runtime, "--runtime"),
      network: valueFor(NETWORKS, values.network, "--network"),
      ...listMessage(listedHosts(values) ?? {}),
      image: values.image ?? "",
      home: values.home ?? "",
      env: parseEnvironment(values.env ?? [], process.env),
      labels: parseAssignments(values.label ?? [], "--label"),
      resources: readLimits(values),
      ...(values["idle-pause"] === undefined
        ? {}
        : { idlePause: durationFromMs(parseDuration(values["idle-pause"], "--idle-pause")) }),
      ...(values.expires === undefined
        ? {}
        : { expiresIn: durationFromMs(parseDuration(values.expires, "--expires")) }),
    };
    const sandbox = await server.sandboxes.createSandbox(request);
    const started = values.start ? await server.sandboxes.startSandbox({ sandboxId: sandbox.id }) : sandbox;
    await showSandbox(started, json);
    return 0;
  },
});

function readLimits(values: {
  readonly memory?: string | undefined;
  readonly cpus?: string | undefined;
  readonly pids?: string | undefined;
  readonly disk?: string | undefined;
}): MessageInitShape<typeof ResourceLimitsSchema> {
  const { memory, cpus, pids, disk } = values;
  return {
    ...(memory === undefined ? {} : { memoryBytes: BigInt(parseByteSize(memory, "--memory")) }),
    ...(cpus === undefined ? {} : { cpuQuota: BigInt(parseCpuQuota(cpus, "--cpus")) }),
    ...(pids === undefined ? {} : { pidsLimit: BigInt(parseCount(pids, "--pids")) }),
    ...(disk === undefined ? {} : { diskBytes: BigInt(parseByteSize(disk, "--disk")) }),
  };
}
