import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { MessageChannel } from "node:worker_threads";
import { expect, test } from "vitest";
import { eventually } from "../../../../../test/support/eventually.ts";
import { socketOwner } from "../../../src/isolation/bwrap/socket-owner.ts";
import { EventFold, SocketOwners } from "../../../src/isolation/network/events.ts";
import type { GateEvent, OwnerQuestion } from "../../../src/isolation/network/gate.ts";

/** Below a shell, as programs in a box are below its first process: calls itself something, and has a socket of each kind. */
const ODD = `
import ctypes, socket, sys
ctypes.CDLL(None).prctl(15, b"odd\\x1b[31m")
udp, tcp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket()
for each in (udp, tcp): each.bind(("127.0.0.1", 0))
tcp.listen()
print(udp.getsockname()[1], tcp.getsockname()[1], flush=True)
sys.stdin.read()
`;

async function odd(): Promise<{ readonly shell: ChildProcess; readonly ports: readonly number[] }> {
  const shell = spawn("sh", ["-c", 'python3 -c "$1"; true', "sh", ODD], { stdio: ["pipe", "pipe", "inherit"] });
  const [line] = (await once(createInterface(shell.stdout!), "line")) as [string];
  return { shell, ports: line.split(" ").map(Number) };
}

test("the program that has a socket is found below a process, by the name it calls itself, in printable letters", async () => {
  const {
    shell,
    ports: [udp = 0, tcp = 0],
  } = await odd();
  try {
    expect(socketOwner(shell.pid!, "udp", udp)).toBe("odd?[31m");
    expect(socketOwner(shell.pid!, "tcp", tcp)).toBe("odd?[31m");
    expect(socketOwner(shell.pid!, "udp", 1)).toBeUndefined();
    expect(socketOwner(process.pid, "tcp", tcp)).toBe("odd?[31m"); // a descendant's descendant
  } finally {
    shell.stdin!.end();
    await once(shell, "close");
  }
  expect(socketOwner(shell.pid!, "udp", udp)).toBeUndefined();
});

test("the first refusal of a kind is told with the program, whoever asks again is no reason to look again", async () => {
  const { port1, port2 } = new MessageChannel();
  const asked: OwnerQuestion[] = [];
  port1.on("message", (question: OwnerQuestion) => {
    asked.push(question);
    port1.postMessage({ id: question.id, program: "curl" });
  });
  const told: GateEvent[] = [];
  using fold = new EventFold((event) => told.push(event));
  const owners = new SocketOwners(port2);
  const refused = { kind: "denied", host: "evil.test", port: 443, sentence: "no" } as const;
  const look = () => fold.addWith(refused, () => owners.of("tcp", 4711));
  // The port does not keep a process alive; here nothing else does.
  const waiting = setInterval(() => {}, 60_000);
  const first = look();
  void look();
  await first;
  void look();
  clearInterval(waiting);
  expect(asked).toMatchObject([{ protocol: "tcp", port: 4711 }]);
  expect(told).toEqual([{ ...refused, program: "curl", count: 1 }]);
  fold.flush();
  await eventually(() => told.length === 2);
  expect(told[1]).toEqual({ ...refused, program: "curl", count: 2 });
  port1.close();
});
