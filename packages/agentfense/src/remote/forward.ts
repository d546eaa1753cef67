import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { Duplex, pipeline } from "node:stream";
import type { SandboxClient } from "@agentfense/sdk";
import { CommandFailure, UsageError } from "../command-failure.ts";
import { print, printJson } from "../output.ts";
import { printable } from "../terminal.ts";

/** Listens on loopback until a signal, and carries each connection to a port of the sandbox. */
export async function forward(client: SandboxClient, sandboxId: string, ports: string, json: boolean): Promise<number> {
  const { inside, local } = parsePorts(ports);
  await client.getSandbox(sandboxId); // whether it is there and ours is better known now than at the first connection
  const listener = createServer({ allowHalfOpen: true }, (socket) => void carry(client, sandboxId, inside, socket));
  listener.listen(local, "127.0.0.1");
  await once(listener, "listening").catch((error: NodeJS.ErrnoException) => {
    const hint = `choose another one: agentfense sandbox forward ${printable(sandboxId)} ${inside}:0`;
    throw new CommandFailure(`cannot listen at 127.0.0.1:${local}: ${error.code ?? error.message}`, { hint });
  });
  const address = `127.0.0.1:${(listener.address() as AddressInfo).port}`;
  if (json) await printJson({ address, sandboxId, port: inside });
  else await print(`${address} is port ${inside} of ${printable(sandboxId)}; Ctrl-C ends it\n`);
  await once(listener, "close"); // never: a signal ends this process, and everything in it
  return 0;
}

function parsePorts(text: string): { readonly inside: number; readonly local: number } {
  const [, inside, local = inside] = /^(\d{1,5})(?::(\d{1,5}))?$/.exec(text) ?? [];
  const isPort = (number: number): boolean => number >= 1 && number <= 65_535;
  if (!isPort(Number(inside)) || !(isPort(Number(local)) || Number(local) === 0)) {
    throw new UsageError(`sandbox forward takes PORT or PORT:LOCAL, as in 3000:8000, not ${printable(text)}`);
  }
  return { inside: Number(inside), local: Number(local) };
}

/** A connection here is one there. What goes wrong with it is said, and ends it alone. */
async function carry(client: SandboxClient, sandboxId: string, port: number, socket: Socket): Promise<void> {
  const leaving = new AbortController();
  socket.on("error", () => {}).once("close", () => leaving.abort());
  try {
    const connection = await client.connectPort(sandboxId, port, { signal: leaving.signal });
    const inside = Duplex.fromWeb(connection as Parameters<typeof Duplex.fromWeb>[0], { allowHalfOpen: true });
    const cut = (error: unknown): void => {
      if (error) for (const end of [socket, inside]) end.destroy();
    };
    pipeline(socket, inside, cut);
    pipeline(inside, socket, cut);
  } catch (error) {
    if (!leaving.signal.aborted) process.stderr.write(`agentfense: ${printable((error as Error).message)}\n`);
    socket.resetAndDestroy(); // as if nothing listened here
  }
}
