import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { syscalls } from "@agentfense/fuse";
import { eventually } from "../../../../../test/support/eventually.ts";
import type { Listen, NetworkAnswer } from "../../../src/isolation/backend/backend.ts";
import type { BwrapBox } from "../../../src/isolation/bwrap/box.ts";
import { openBoxFixture, shell } from "../bwrap/fixture.ts";

// Listens in the networks of boxes, as whoever runs this process; prints what was found.

const BOXES = Number(process.argv[2]);
const PLACES = [
  { protocol: "udp", address: "198.18.0.53", port: 53 },
  { protocol: "tcp", address: "198.18.0.53", port: 53 },
  { protocol: "tcp", address: "0.0.0.0", port: 443 },
  { protocol: "tcp", address: "198.18.7.7", port: 5432 },
] as const;

/** At TCP ports it says where it was reached; the rest is only held. */
async function answerIn(listen: Listen): Promise<NetworkAnswer> {
  const [udp = -1, ...tcp] = await listen(PLACES);
  const servers = tcp.map((fd) => {
    return createServer((socket) => {
      socket.on("error", () => {}).end(`${socket.localAddress} ${socket.localPort}\n`);
    }).listen({ fd });
  });
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    syscalls.close(udp);
    await Promise.all(servers.map(ended));
  };
  return {
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}

function ended(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

const CONNECTIONS = `
import socket, sys
for line in sys.stdin.read().split():
    host, port = line.rsplit(":", 1)
    try:
        with socket.create_connection((host, int(port)), 5) as s: print(line, s.makefile().readline().strip())
    except OSError as error: print(line, type(error).__name__, error.errno)
`;
const OWN = `
import socket
def attempt(title, work):
    try: work(); print(title, "done")
    except OSError as error: print(title, error.errno)
def bound(address, port, *options):
    s = socket.socket()
    for option in options: s.setsockopt(socket.SOL_SOCKET, option, 1)
    s.bind((address, port)); s.listen()
attempt("a port of its own", lambda: bound("127.0.0.1", 5432))
attempt("every address of a port of ours", lambda: bound("0.0.0.0", 5432))
attempt("443", lambda: bound("0.0.0.0", 443, socket.SO_REUSEADDR))
attempt("443 shared", lambda: bound("198.18.0.9", 443, socket.SO_REUSEPORT))
attempt("53", lambda: bound("198.18.0.53", 53))
`;

const instance = `listeners-${process.pid}`;
{
  await using place = await openBoxFixture({ instance, spec: { network: "filtered", answerIn } });
  const run = async (program: string, input = ""): Promise<string[]> => {
    const argv = ["/usr/bin/python3", "-c", program] as const;
    return (await place.sh("", { argv: [...argv], input })).stdout.trim().split("\n");
  };
  const targets = ["198.18.0.9:443", "198.19.255.254:443", "198.18.7.7:5432", "198.18.7.8:5432", "198.18.0.9:80"];
  const others = ["1.1.1.1:443", "10.0.0.1:443"];
  const reached = await run(CONNECTIONS, [...targets, ...others].join("\n"));
  const own = await run(OWN);
  const files = (await place.sh("cat /etc/resolv.conf; grep hosts /etc/nsswitch.conf")).stdout;
  const devices = (await place.sh("cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' '")).stdout;
  const capabilities = (await place.sh("grep CapEff /proc/self/status; ip addr add 10.1.1.1/8 dev lo; echo $?")).stdout;

  // A box that broke has listeners again with its next command.
  process.kill(place.box.initPid!, "SIGKILL");
  const again = await until(async () => (await place.sh("cat < /dev/tcp/198.18.0.9/443")).stdout);

  const before = held();
  for (let done = 0; done < BOXES; done += 5) {
    const boxes: BwrapBox[] = await Promise.all(
      Array.from({ length: 5 }, (_, index) =>
        place.anotherBox({ id: `box-${done + index}`, network: "filtered", answerIn }),
      ),
    );
    const said = await Promise.all(
      boxes.map(async (box) => (await shell(box, "cat < /dev/tcp/198.18.0.9/443")).stdout),
    );
    if (said.some((line) => line !== "198.18.0.9 443\n")) throw new Error(`a box got ${JSON.stringify(said)}`);
    await Promise.all(boxes.map((box) => box.destroy()));
  }
  // Where a process has just ended, the kernel may still be at it.
  await eventually(() => leftOver(before).length === 0).catch(() => {}); // the report tells
  console.log(JSON.stringify({ reached, own, files, devices, capabilities, again, leftOver: leftOver(before) }));
}

/** Tries again as long as it fails: the kill may be noticed only by the command that comes next. */
async function until(work: () => Promise<string>): Promise<string> {
  for (;;) {
    const said = await work().catch(() => "");
    if (said !== "") return said;
  }
}

/** What this process has that a box could leave behind: descriptors, threads, and processes in networks of boxes. */
function held() {
  return {
    descriptors: readdirSync("/proc/self/fd").length,
    threads: readdirSync("/proc/self/task").length,
    processes: processesInBoxes(),
  };
}

/** Of which there is more than there was. */
function leftOver(before: ReturnType<typeof held>): string[] {
  const now = held();
  return (["descriptors", "threads", "processes"] as const)
    .filter((kind) => now[kind] > before[kind])
    .map((kind) => `${kind}: ${before[kind]}, now ${now[kind]}`);
}

/** Below this one, in another network than it is. */
function processesInBoxes(): number {
  const own = readlinkSync("/proc/self/ns/net");
  const children = (pid: string): string[] => {
    try {
      const found = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
        readChildren(`/proc/${pid}/task/${task}/children`),
      );
      return [...found, ...found.flatMap(children)];
    } catch {
      return [];
    }
  };
  return children("self").filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/ns/net`) !== own;
    } catch {
      return false;
    }
  }).length;
}

function readChildren(path: string): string[] {
  return readFileSync(path, "latin1")
    .trim()
    .split(" ")
    .filter((pid) => pid !== "");
}
