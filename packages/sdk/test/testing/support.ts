import type { Rule } from "@agentfense/permission";
import { expect } from "vitest";
import { eventually } from "../../../../test/support/eventually.ts";
import { SandboxClient } from "../../src/client/client.ts";
import type { SandboxOptions } from "../../src/model/options.ts";
import { MockEngine, type MockFileMap } from "../../src/testing/index.ts";

export interface Opened extends AsyncDisposable {
  readonly engine: MockEngine;
  readonly client: SandboxClient;
  readonly codebaseId: string;
  /** Of the sandbox, which runs. */
  readonly id: string;
}

/** Everything may be read, what is below /out may be written, what is below /secrets is hidden. */
export const RULES: readonly Rule[] = [
  { pattern: "**/*", permission: "read" },
  { pattern: "/out/**", permission: "write" },
  { pattern: "/docs/**", permission: "view" },
  { pattern: "/secrets/**", permission: "none" },
  { pattern: "/secrets/public.key", permission: "read" },
];

export const FILES: MockFileMap = {
  "src/a.ts": "one\ntwo\nthree\n",
  "out/old.txt": "old\n",
  "docs/plan.md": "plan\n",
  "secrets/private.key": "s3cret\n",
  "secrets/public.key": "public\n",
};

/** A running sandbox of a mock engine; its changes wait unless said otherwise. */
export async function openMock(
  options: SandboxOptions & { readonly files?: MockFileMap; readonly engine?: MockEngine } = {},
): Promise<Opened> {
  const { files = FILES, engine = new MockEngine(), ...sandbox } = options;
  const client = new SandboxClient({ engine });
  const codebaseId = engine.addCodebase(files);
  const { id } = await client.createSandbox({ codebaseId, permissions: RULES, sync: "manual", ...sandbox });
  await client.startSandbox(id);
  return {
    engine,
    client,
    codebaseId,
    id,
    async [Symbol.asyncDispose]() {
      await client.close();
      await engine[Symbol.asyncDispose]();
    },
  };
}

/** The code of the error that a call ends with. */
export async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    return (error as { code: string }).code;
  }
  return "no error";
}

export function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("utf8");
}

/** Waits until so many commands were begun. */
export async function begun({ engine }: Opened, count: number): Promise<void> {
  await eventually(() => expect(engine.calls.length).toBe(count));
}
