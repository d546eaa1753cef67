import { chmod, cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { networkRules, openIsolation, type Sandbox, type SandboxEvent } from "@agentfense/server/isolation";
import { type Answer, openInternet } from "./internet.ts";

type ConnectionEvent = Extract<SandboxEvent, { readonly host: string }>;

export interface FilteredSandbox {
  readonly sandbox: Sandbox;
  /** What it was told of its connections. */
  readonly events: readonly ConnectionEvent[];
  /** Runs a line of shell, or a program, and gives both outputs and the exit code as they are. */
  run(
    command: string | readonly [string, ...string[]],
    input?: string,
  ): Promise<{ out: string; err: string; code: number }>;
  allow(...hosts: string[]): Promise<void>;
}

/** An internet on this machine, and sandboxes with filtered networks that take it for the real one. */
export async function openFilteredSandboxes(names: Readonly<Record<string, Answer>>) {
  await using undo = new AsyncDisposableStack();
  const internet = undo.use(await openInternet(names));
  const { network: _, ...seam } = internet.seam;
  const directory = await mkdtemp(join(tmpdir(), "agentfense-filtered-"));
  undo.defer(() => rm(directory, { recursive: true, force: true }));
  await chmod(directory, 0o755);
  const project = join(directory, "project");
  await mkdir(project);
  await writeFile(join(project, "ca.pem"), internet.ca);
  // The program that runs this one may lie where a box shows nothing.
  await cp(process.execPath, join(project, "node"));
  const isolation = undo.use(await openIsolation({ stateDirectory: join(directory, "state"), internet: seam }));
  const parts = undo.move();
  let made = 0;
  return {
    internet,
    /** What every sandbox has at /workspace. */
    project,
    async open(...hosts: string[]): Promise<FilteredSandbox> {
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
        ],
        network: "filtered",
        networkRules: networkRules({ allow: hosts }),
        env: { CURL_CA_BUNDLE: ca, NODE_EXTRA_CA_CERTS: ca, SSL_CERT_FILE: ca, GIT_SSL_CAINFO: ca },
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

/** The arguments that run a program of this repository as somebody else. */
export function runAs({ uid, gid }: { readonly uid: number; readonly gid: number }, program: string): string[] {
  return [`--reuid=${uid}`, `--regid=${gid}`, "--clear-groups", process.execPath, program];
}
