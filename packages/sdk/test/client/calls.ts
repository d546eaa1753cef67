import { onTestFinished } from "vitest";
import { type Script, type ScriptedServer, startScripted } from "../../../../test/support/scripted-server.ts";
import { SandboxClient } from "../../src/client/client.ts";
import type { ConnectionOptions } from "../../src/model/options.ts";

/** A client of a server that answers as the test says. */
export async function clientOf(
  script: Script,
  options: ConnectionOptions = {},
): Promise<{ readonly client: SandboxClient; readonly server: ScriptedServer }> {
  const server = await startScripted(script);
  const client = new SandboxClient({ endpoint: server.endpoint, ...options });
  onTestFinished(() => client.close());
  return { client, server };
}

/** What a promise is rejected with. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    (value) => {
      throw new Error(`it was not rejected, and gave ${JSON.stringify(value)}`);
    },
    (reason: unknown) => reason,
  );
}
