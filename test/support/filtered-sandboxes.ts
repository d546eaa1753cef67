import { chmod, cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type BoxedWorkspace,
  networkRules,
  openIsolation,
  type SandboxEvent,
  type SecretWithValue,
  withSecretHosts,
} from "@agentfense/server/isolation";
import { type Answer, type InternetOptions, openInternet } from "./internet.ts";

type ConnectionEvent = Extract<SandboxEvent, { readonly host: string }>;

export interface FilteredSandbox {
  readonly sandbox: BoxedWorkspace;
  /** What it was told of its connections. */
  readonly events: readonly ConnectionEvent[];
  /** Runs a line of shell, or a program, and gives both outputs and the exit code as they are. */
  run(
    command: string | readonly [string, ...string[]],
    input?: string,
  ): Promise<{ out: string; err: string; code: number }>;
  allow(...hosts: string[]): Promise<void>;
}

export interface FilteredSandboxOptions {
  /** Which open TLS: programs then meet the sandbox's own authority, and not the internet's. */
  readonly secrets?: readonly SecretWithValue[];
  /** Directories of the host that programs of the sandbox are in, by where they are shown. */
  readonly tools?: Readonly<Record<string, string>>;
}

/** An internet on this machine, and sandboxes with filtered networks that take it for the real one. */
export async function openFilteredSandboxes(names: Readonly<Record<string, Answer>>, options: InternetOptions = {}) {
  await using undo = new AsyncDisposableStack();
  const internet = undo.use(await openInternet(names, options));
  const { network: _, ...seam } = internet.seam;
  const directory = await mkdtemp(join(tmpdir(), "agentfense-filtered-"));
  undo.defer(() => rm(directory, { recursive: true, force: true }));
  await chmod(directory, 0o755);
  const project = join(directory, "project");
  await mkdir(project);
  await writeFile(join(project, "ca.pem"), internet.ca);
  // The program that runs this one may lie where a box shows nothing.
  await cp(process.execPath, join(project, "node"));
  const isolation = undo.use(
    await openIsolation({
      stateDirectory: join(directory, "state"),
      internet: { ...seam, certificates: [internet.ca] },
    }),
  );
  const parts = undo.move();
  let made = 0;
  return {
    internet,
    /** What every sandbox has at /workspace. */
    project,
    async open(
      allow: readonly unknown[],
      { secrets = [], tools = {} }: FilteredSandboxOptions = {},
    ): Promise<FilteredSandbox> {
      const events: ConnectionEvent[] = [];
      const ca = "/workspace/ca.pem";
      const sandbox = await isolation.create({
        runtime: "bwrap",
        workspaces: [
          {
            lowers: [project],
            delta: join(directory, `delta-${++made}`),
            rules: [{ pattern: "**", permission: "write" }],
          },
          ...Object.entries(tools).map(([target, source]) => ({ target, lowers: [source], rules: READ_ALL })),
        ],
        network: "filtered",
        networkRules: withSecretHosts(networkRules({ allow }), secrets),
        secrets,
        env: secrets.length > 0 ? {} : Object.fromEntries(CERTIFICATE_VARIABLES.map((name) => [name, ca])),
        onEvent: (event) => {
          if (event.kind === "connection_allowed" || event.kind === "connection_denied") events.push(event);
        },
      });
      await sandbox.start();
      return {
        sandbox,
        events,
        async run(command, input) {
          const request = { command, ...(input === undefined ? {} : { stdin: Buffer.from(input) }) };
          const { stdout, stderr, exitCode } = await sandbox.exec(request);
          return { out: stdout.toString(), err: stderr.toString(), code: exitCode };
        },
        allow: (...list) => sandbox.updateNetwork(networkRules({ allow: list })),
      };
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

const READ_ALL = [{ pattern: "**", permission: "read" }] as const;
const CERTIFICATE_VARIABLES = [
  ...["CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE"],
  ...["PIP_CERT", "CARGO_HTTP_CAINFO"],
];

/** The arguments that run a program of this repository as somebody else. */
export function runAs({ uid, gid }: { readonly uid: number; readonly gid: number }, program: string): string[] {
  return [`--reuid=${uid}`, `--regid=${gid}`, "--clear-groups", process.execPath, program];
}
