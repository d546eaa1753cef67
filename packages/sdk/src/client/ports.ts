import { type PortDataSchema, SandboxService } from "@agentfense/protocol/sandbox";
import type { MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { ConnectionError } from "../errors.ts";
import type { CallOptions } from "../model/options.ts";
import type { PortInfo } from "../model/records.ts";
import type { GetPortOptions, PortConnection, WaitForPortOptions } from "../model/requests.ts";
import { type CallStream, InputQueue } from "./call-stream.ts";
import { pieces } from "./content.ts";
import { dateOf, durationOf, uint32Of } from "./messages/values.ts";
import type { Rpc } from "./rpc.ts";
import { startingWith } from "./terminal.ts";

const { method } = SandboxService;
const DEFAULT_WAIT_MS = 30_000;
/** For the answer to come after the server has given up. */
const GRACE_MS = 10_000;

type Input = MessageInitShape<typeof PortDataSchema>;
type Output = MessageShape<typeof PortDataSchema>;

export async function getPort(
  rpc: Rpc,
  sandboxId: string,
  port: number,
  { expiresInMs, signal }: GetPortOptions = {},
): Promise<PortInfo> {
  const expiresIn = expiresInMs === undefined ? {} : { expiresIn: durationOf(expiresInMs, "expiresInMs") };
  const request = { sandboxId, port: uint32Of(port, "port"), ...expiresIn };
  const { url, hostUrl, token, expiresAt } = await rpc.unary(method.getPort, request, { signal });
  return { sandboxId, port, url, hostUrl, token, expiresAt: dateOf(expiresAt) };
}

export async function waitForPort(
  rpc: Rpc,
  sandboxId: string,
  port: number,
  { timeoutMs = DEFAULT_WAIT_MS, signal }: WaitForPortOptions = {},
): Promise<void> {
  const request = { sandboxId, port: uint32Of(port, "port"), timeout: durationOf(timeoutMs, "timeoutMs") };
  await rpc.unary(method.waitForPort, request, { signal, timeoutMs: timeoutMs + GRACE_MS });
}

export async function connectPort(
  rpc: Rpc,
  sandboxId: string,
  port: number,
  { signal }: CallOptions = {},
): Promise<PortConnection> {
  const inputs = new InputQueue<Input>();
  const open: Input = { content: { case: "open", value: { sandboxId, port: uint32Of(port, "port") } } };
  const outputs = rpc.bidiStream(method.forwardPort, startingWith(open, inputs), { signal });
  const first = await outputs.next(); // an empty one: it is open
  if (first.done === true) throw new ConnectionError("the connection was not opened", { code: "CONNECTION_FAILED" });
  return connectionOver(inputs, outputs);
}

function connectionOver(inputs: InputQueue<Input>, outputs: CallStream<Output>): PortConnection {
  const close = async (): Promise<void> => {
    inputs.end();
    await outputs.return();
  };
  const readable = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          for (;;) {
            const next = await outputs.next();
            const { content } = next.done === true ? { content: { case: "end" as const } } : next.value;
            if (content.case === "data") return controller.enqueue(content.value);
            if (content.case === "end") break;
          }
          controller.close();
          // The other direction goes on until it is ended, and the call with it.
          void drain(outputs, inputs);
        } catch (error) {
          inputs.end();
          throw error;
        }
      },
      cancel: close,
    },
    { highWaterMark: 0 },
  );
  const writable = new WritableStream<Uint8Array>({
    async write(data) {
      for (const value of pieces(data)) await inputs.push({ content: { case: "data", value } });
    },
    close: () => inputs.push({ content: { case: "end", value: true } }),
    abort: close,
  });
  return { readable, writable, close, [Symbol.asyncDispose]: close };
}

async function drain(outputs: CallStream<Output>, inputs: InputQueue<Input>): Promise<void> {
  try {
    for await (const _ of outputs);
  } catch {
    // What comes after the end of what was to be read is of interest to nobody.
  } finally {
    inputs.end();
  }
}
