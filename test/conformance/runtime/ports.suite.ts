import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import type { BoxedWorkspace, SandboxSpec } from "@agentfense/server/isolation";
import { describe, expect, onTestFinished } from "vitest";
import { eventually, withoutHanging } from "../../support/eventually.ts";

export interface PortsTarget {
  running(extra?: Partial<SandboxSpec>): Promise<BoxedWorkspace>;
  /** Its next life, of the same delta and home. */
  again(sandbox: BoxedWorkspace): Promise<BoxedWorkspace>;
  reality(title: string, body: () => Promise<void>): void;
}

// Without a module, so that it runs wherever perl does. FAMILY ADDRESS PORT MODE
const SERVER = `
  my ($family, $address, $port, $mode) = @ARGV;
  socket(my $server, $family, 1, 6) or die "socket: $!";
  setsockopt($server, 1, 2, pack("l", 1));
  my $place = $family == 2 ? pack("S n C4 x8", 2, $port, split(/\\./, $address)) : pack("S n N a16 N", 10, $port, 0, ("\\0" x 15) . "\\1", 0);
  bind($server, $place) && listen($server, 1024) or die "listen: $!";
  $| = 1; print "ready\\n";
  if ($mode eq "idle") { sleep 3600 }
  $SIG{CHLD} = "IGNORE";
  while (accept(my $client, $server)) {
    next if fork;
    if ($mode eq "greet") { syswrite($client, "hello from $port\\n"); exit }
    while (sysread($client, my $bytes, 1 << 16)) {
      for (my $done = 0; $done < length $bytes; ) { $done += syswrite($client, $bytes, 1 << 16, $done) || exit }
    }
    syswrite($client, "and that was all\\n");
    exit;
  }`;

/** A server in the sandbox, as a command that goes on until the sandbox ends. */
export async function serveInside(
  sandbox: BoxedWorkspace,
  port: number,
  mode: "echo" | "greet" | "idle",
  address: { readonly family: 2 | 10; readonly name: string } = { family: 2, name: "127.0.0.1" },
): Promise<void> {
  const command = ["/usr/bin/perl", "-e", SERVER, `${address.family}`, address.name, `${port}`, mode];
  const events = sandbox.execStream({ command, env: { LC_ALL: "C" }, timeoutMs: 300_000 })[Symbol.asyncIterator]();
  const first = await events.next();
  if (first.value?.kind !== "stdout") throw new Error(`no server: ${JSON.stringify(first.value)}`);
  const rest = (async () => {
    for await (const _ of { [Symbol.asyncIterator]: () => events });
  })();
  rest.catch(() => {}); // it ends with the sandbox
}

async function everything(socket: Socket): Promise<string> {
  return Buffer.concat(await socket.toArray()).toString();
}

/** What every box does with its ports. */
export function describePorts({ running, again, reality }: PortsTarget): void {
  describe("ports", () => {
    reality("are reached on the loopback device of the sandbox, and of no other", async () => {
      const [sandbox, other] = [await running(), await running()];
      await serveInside(sandbox, 3000, "greet");
      expect(await everything(await sandbox.connect(3000))).toBe("hello from 3000\n");
      await expect(other.connect(3000)).rejects.toMatchObject({ code: "PORT_CLOSED" });
    });

    reality("of IPv6 alone are reached, too", async () => {
      const sandbox = await running();
      await serveInside(sandbox, 3006, "greet", { family: 10, name: "::1" });
      expect(await everything(await sandbox.connect(3006))).toBe("hello from 3006\n");
    });

    reality("where nothing listens are refused by their number, and are open as soon as something does", async () => {
      const sandbox = await running();
      await expect(sandbox.connect(3001)).rejects.toMatchObject({
        code: "PORT_CLOSED",
        message: "nothing listens at port 3001 of the sandbox",
      });
      await serveInside(sandbox, 3001, "greet");
      expect(await everything(await sandbox.connect(3001))).toBe("hello from 3001\n");
    });

    reality("of the host are out of reach", async () => {
      const host = createServer((socket) => socket.end("the host\n")).listen(0, "127.0.0.1");
      onTestFinished(() => void host.close());
      await once(host, "listening");
      const { port } = host.address() as { port: number };
      const sandbox = await running();
      await expect(sandbox.connect(port)).rejects.toMatchObject({ code: "PORT_CLOSED" });
    });

    reality("do not exist in the network of the host, which a sandbox may share", async () => {
      const sandbox = await running({ network: "host" });
      await expect(sandbox.connect(22)).rejects.toMatchObject({ code: "RUNTIME_UNAVAILABLE" });
    });

    reality("must be numbers of ports", async () => {
      const sandbox = await running();
      for (const port of [0, -1, 65_536, 1.5, Number.NaN]) {
        await expect(sandbox.connect(port)).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
      }
    });

    reality("an end of what is sent is no end of what is received", async () => {
      const sandbox = await running();
      await serveInside(sandbox, 3002, "echo");
      const socket = await sandbox.connect(3002);
      socket.end("first half");
      expect(await everything(socket)).toBe("first halfand that was all\n");
    });

    reality("carry 50 MB each way unchanged", async () => {
      const sandbox = await running();
      await serveInside(sandbox, 3003, "echo");
      const socket = await sandbox.connect(3003);
      const block = randomBytes(1 << 20);
      const [sent, received] = [createHash("sha256"), createHash("sha256")];
      const sending = (async () => {
        for (let i = 0; i < 50; i++) {
          block.writeUInt32LE(i);
          sent.update(block);
          const copy = Buffer.from(block);
          if (!socket.write(copy)) await once(socket, "drain");
        }
        socket.end();
      })();
      let count = 0;
      for await (const chunk of socket as AsyncIterable<Buffer>) {
        count += chunk.length;
        received.update(chunk);
      }
      await sending;
      sent.update("and that was all\n");
      expect([count, received.digest("hex")]).toEqual([50 * (1 << 20) + 17, sent.digest("hex")]);
    });

    reality("have so many connections and no more, until some are closed", async () => {
      const sandbox = await running();
      await serveInside(sandbox, 3004, "idle");
      const open: Socket[] = [];
      onTestFinished(() => open.forEach((socket) => void socket.destroy()));
      const more = async (): Promise<never> => {
        for (;;) open.push(await sandbox.connect(3004));
      };
      const refusal = { code: "RESOURCES_EXHAUSTED", message: expect.stringContaining("connections to its ports") };
      await expect(withoutHanging(more)).rejects.toMatchObject(refusal);
      expect(open.length).toBe(256);
      const [first] = open;
      await Promise.all([once(first as Socket, "close"), first?.destroy()]);
      open.push(await sandbox.connect(3004));
      await expect(sandbox.connect(3004)).rejects.toMatchObject(refusal);
    });

    reality("are opened side by side", async () => {
      const sandbox = await running();
      await serveInside(sandbox, 3005, "greet");
      const answers = await Promise.all(
        Array.from({ length: 50 }, async () => everything(await sandbox.connect(3005))),
      );
      expect(new Set(answers)).toEqual(new Set(["hello from 3005\n"]));
      expect(answers.length).toBe(50);
    });

    reality("are cut when the sandbox ends, and need it to run", async () => {
      const sandbox = await running();
      await serveInside(sandbox, 3007, "echo");
      const socket = await sandbox.connect(3007);
      socket.on("error", () => {}).resume();
      const closed = once(socket, "close");
      await sandbox.destroy();
      await withoutHanging(() => closed);
      await expect(sandbox.connect(3007)).rejects.toMatchObject({ code: "SANDBOX_NOT_RUNNING" });
      const next = await again(sandbox);
      await expect(next.connect(3007)).rejects.toMatchObject({ code: "PORT_CLOSED" });
    });

    reality("leave nothing in the sandbox: no process, no socket that listens", async () => {
      const sandbox = await running();
      // By the shell alone, which forks for none of it.
      const command = `for p in /proc/[0-9]*; do read -r name < $p/comm && echo $name; done
        while read -r line; do case $line in *" 0A "*) echo listens;; esac; done < /proc/net/tcp`;
      const look = async (): Promise<string> => (await sandbox.exec({ command })).stdout.toString();
      const before = await look();
      await expect(sandbox.connect(3008)).rejects.toMatchObject({ code: "PORT_CLOSED" });
      await eventually(async () => expect(await look()).toBe(before));
    });
  });
}
