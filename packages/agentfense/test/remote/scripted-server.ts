import { SandboxStatus } from "@agentfense/protocol/common";
import { NetworkMode, RuntimeType, SyncMode } from "@agentfense/protocol/sandbox";
import { type Script, startScripted } from "../../../../test/support/scripted-server.ts";
import { agentfense, type Surroundings } from "../run-cli.ts";

/** What every server says of a sandbox. */
export const SANDBOX = {
  status: SandboxStatus.RUNNING,
  runtime: RuntimeType.BWRAP,
  network: NetworkMode.NONE,
  sync: SyncMode.MANUAL,
};

/** A server that answers as the test says, and the command line against it. */
export async function scriptedServer(script: Script) {
  const { endpoint, authorizations, end } = await startScripted(script);
  const env = { AGENTFENSE_ENDPOINT: endpoint };
  return {
    endpoint,
    env,
    authorizations,
    end,
    run: (args: readonly string[], { env: more, ...rest }: Surroundings = {}) =>
      agentfense(args, { ...rest, env: { ...env, ...more } }),
  };
}
