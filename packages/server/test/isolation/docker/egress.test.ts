import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { NOT_PUBLIC_RANGES } from "@agentfense/permission";
import { describe, expect, test, vi } from "vitest";
import { eventually } from "../../../../../test/support/eventually.ts";
import type { Box } from "../../../src/isolation/backend/backend.ts";
import { egressPolicy, packetFilter, resolversIn } from "../../../src/isolation/backend/egress.ts";
import { DockerBox, type DockerBoxOptions } from "../../../src/isolation/docker/box.ts";
import { EgressGuard, reasonAgainstSockets } from "../../../src/isolation/docker/egress.ts";
import { type Arena, bash, describeDocker, finish, output } from "./arena.ts";

describe("the egress policy", () => {
  const surroundings = {
    hostAddresses: ["192.31.196.7", "2600::7", "fe80::1"],
    networks: ["172.17.0.2/16", "2600:0:1::2/64"],
    resolvers: ["10.1.2.3", "192.31.196.7", "2600:0:0:0::7", "fd00::53", "fe80::1%eth0", "nonsense"],
  };

  test("forbids private ranges, the host and the box's own network, but lets name servers be asked", () => {
    expect(egressPolicy("ipv4", surroundings)).toEqual({
      resolvers: ["10.1.2.3"],
      forbidden: [...NOT_PUBLIC_RANGES.ipv4, "172.17.0.2/16", "192.31.196.7/32"],
    });
    expect(egressPolicy("ipv6", surroundings)).toEqual({
      resolvers: ["fd00::53"],
      forbidden: [...NOT_PUBLIC_RANGES.ipv6, "2600:0:1::2/64", "2600::7/128", "fe80::1/128"],
    });
  });

  test("as a packet filter accepts exceptions first and refuses the rest", () => {
    expect(packetFilter("ipv4", { resolvers: ["10.1.2.3"], forbidden: ["10.0.0.0/8"] })).toBe(
      [
        "*filter",
        ":INPUT ACCEPT [0:0]",
        ":FORWARD DROP [0:0]",
        ":OUTPUT ACCEPT [0:0]",
        "-A OUTPUT -o lo -j ACCEPT",
        "-A OUTPUT -d 10.1.2.3 -p udp --dport 53 -j ACCEPT",
        "-A OUTPUT -d 10.1.2.3 -p tcp --dport 53 -j ACCEPT",
        "-A OUTPUT -d 10.0.0.0/8 -j REJECT",
        "COMMIT",
        "",
      ].join("\n"),
    );
  });

  test("finds the name servers of a resolv.conf", () => {
    expect(resolversIn("# nameserver 9.9.9.9\nnameserver 10.1.2.3\n nameserver\tfd00::53 # x\nsearch a\n")).toEqual([
      "10.1.2.3",
      "fd00::53",
    ]);
  });

  test("is refused, and the private network with it, where it cannot be carried out", async () => {
    const refused = { code: "RUNTIME_UNAVAILABLE", hint: expect.stringContaining("network none") };
    await expect(EgressGuard.open("/usr/bin/runsc", () => {})).rejects.toMatchObject(refused);
    const somebody = vi.spyOn(process, "geteuid").mockReturnValue(1000);
    await expect(EgressGuard.open("runc", () => {})).rejects.toMatchObject(refused);
    somebody.mockRestore();
  });

  test("ports are refused in a sentence where the container's network cannot be entered", async () => {
    const refusal = async (program: string): Promise<unknown> => {
      const options = { spec: { network: "none" }, noPorts: reasonAgainstSockets(program), owner: { uid: 1, gid: 1 } };
      return await new DockerBox(options as unknown as DockerBoxOptions).connect(80).catch((error: unknown) => error);
    };
    const hint = "use a server of root with runc or crun, or the runtime bwrap, whose ports every server reaches";
    const refused = (why: string) => ({
      code: "RUNTIME_UNAVAILABLE",
      message: `a container's ports cannot be reached: ${why}`,
      hint,
    });
    expect(await refusal("/usr/bin/runc")).toMatchObject({ code: "SANDBOX_NOT_RUNNING" });
    expect(await refusal("/usr/bin/runsc")).toMatchObject(refused("runsc has a network stack of its own"));
    const somebody = vi.spyOn(process, "geteuid").mockReturnValue(1000);
    expect(await refusal("runc")).toMatchObject(refused("only a server of root can enter its network"));
    somebody.mockRestore();
  });
});

/** On the internet, as far as the box can tell; in truth a second address of the engine's host. */
const PUBLIC = "192.31.196.80";
const GATEWAY = "172.17.0.1";
const PORT = 8099;

// Everything a program may do without a privilege to choose its way.
const TRY = `
import errno, json, socket, struct, sys
def reach(address, kind, prepare=lambda s: None, ancillary=()):
    with socket.socket(socket.AF_INET, kind) as s:
        s.settimeout(2)
        try:
            prepare(s)
            if kind == socket.SOCK_STREAM: s.connect((address, ${PORT}))
            else: s.sendmsg([b"x"], ancillary, 0, (address, ${PORT}))
            return "OK"
        except TimeoutError: return "no answer"
        except OSError as e: return errno.errorcode[e.errno]
tcp, udp = socket.SOCK_STREAM, socket.SOCK_DGRAM
device = socket.if_nametoindex("eth0")
bind = lambda s: s.setsockopt(socket.SOL_SOCKET, 25, b"eth0")
by_device = lambda s: s.setsockopt(socket.IPPROTO_IP, 50, struct.pack("!I", device))
shout = lambda s: s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
said = [(socket.IPPROTO_IP, 8, struct.pack("I4s4s", device, b"", b""))]
g = "${GATEWAY}"
print(json.dumps({
    "public": reach("${PUBLIC}", tcp),
    "forbidden": sorted({reach(g, tcp), reach(g, tcp, bind), reach(g, udp), reach(g, udp, bind), reach(g, udp, by_device),
        reach(g, udp, ancillary=said), reach("255.255.255.255", udp, shout), reach("172.17.255.255", udp, shout),
        reach("224.0.0.1", udp, bind), reach("169.254.1.1", udp, ancillary=said)}),
}))
`;

/** A service on the engine's side, everywhere it has an address. */
async function openService(arena: Arena): Promise<{ heard(): string }> {
  const pid = readFileSync(join(dirname(arena.engine.socketPath), "pid"), "utf8").trim();
  const enter = ["--net", "-t", pid, "--"];
  execFileSync("nsenter", [...enter, "ip", "address", "replace", `${PUBLIC}/32`, "dev", "lo"]);
  const service = spawn("nsenter", [...enter, "python3", "-c", SERVE], { stdio: ["ignore", "pipe", "inherit"] });
  let heard = "";
  service.stdout.setEncoding("utf8").on("data", (line: string) => {
    heard += line;
  });
  arena.onTidy(async () => {
    service.kill("SIGKILL");
    await once(service, "close");
  });
  await once(service.stdout, "data");
  return { heard: () => heard };
}

const SERVE = `
import socket, threading
tcp = socket.create_server(("0.0.0.0", ${PORT}))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("0.0.0.0", ${PORT}))
def hear():
    while True: print("a datagram from", udp.recvfrom(100)[1][0], flush=True)
threading.Thread(target=hear, daemon=True).start()
print("ready", flush=True)
while True:
    connection, _ = tcp.accept()
    print("a connection to", connection.getsockname()[0], flush=True)
    connection.close()
`;

async function tryEverything(box: Box): Promise<unknown> {
  const run = await box.run({ argv: ["/usr/bin/python3", "-c", TRY], env: {}, workdir: "/", stdin: false });
  const { stdout, stderr } = await finish(run);
  expect(stderr).toBe("");
  return JSON.parse(stdout);
}

describeDocker("a box with a private network", (arena) => {
  const confined = { public: "OK", forbidden: ["ECONNREFUSED", "EPERM"] };

  test("reaches the internet but not the host, whatever way its packets choose; also after a restart", async () => {
    const service = await openService(arena);
    const box = await arena.box({ network: "private" });
    expect(await tryEverything(box)).toEqual(confined);
    // A helper that does not answer makes the container start again, with another network namespace.
    const stopper = await bash(
      box,
      "for p in /proc/[0-9]*; do grep -q '^PPid:.0' $p/status && kill -STOP $(basename $p); done; echo stopped; sleep 1000",
    );
    await once(stopper.stdout, "readable");
    stopper.kill();
    await finish(stopper);
    expect(await tryEverything(box)).toEqual(confined);
    const heard = `ready\n${`a connection to ${PUBLIC}\n`.repeat(2)}`;
    await eventually(() => service.heard().length >= heard.length);
    expect(service.heard()).toBe(heard);
  });

  test("is not used any more when somebody else has started its container again", async () => {
    const box = await arena.box({ network: "private" });
    await arena.engine.docker("restart", "-t", "0", await arena.container());
    await expect(bash(box, "true")).rejects.toMatchObject({ code: "SANDBOX_NOT_RUNNING" });
    await box.destroy();
    const next = await arena.box({ network: "private" });
    expect(await tryEverything(next)).toMatchObject({ forbidden: confined.forbidden });
  });

  test("may share the engine's own network by name, and is then not confined", async () => {
    await openService(arena);
    const box = await arena.box({ network: "host" });
    const { stdout } = await output(box, `exec 3<>/dev/tcp/${GATEWAY}/${PORT} && echo connected; ls /sys/class/net`);
    expect(stdout).toMatch(/^connected\n/);
    expect(stdout).toContain("docker0");
  });
});
