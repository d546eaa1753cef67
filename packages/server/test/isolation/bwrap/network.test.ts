import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { type As, identityOf, reasonAgainst } from "../../../../../test/support/identity.ts";

const run = promisify(execFile);
const PROGRAM = new URL("network-process.ts", import.meta.url).pathname;

// The device must be open to all, as udev makes it; where it is not, a mount namespace of the test's own has it so.
const PREPARE = `mknod -m 666 "$1/tun" c 10 200 && mount --bind "$1/tun" /dev/net/tun && shift && exec "$@"`;

/** A host with an address, a way out and a resolv.conf that are nobody else's. */
const OWN_HOST = `
touch "$1/resolv.conf" && mount --bind "$1/resolv.conf" /etc/resolv.conf && shift &&
ip link set lo up && ip tuntap add eth0 mode tap && ip address add 203.0.113.10/24 dev eth0 &&
ip link set eth0 up && ip route add default via 203.0.113.1 && exec "$@"`;

describe("a box with a private network", () => {
  for (const as of ["root", "user"] satisfies As[]) {
    const reason = reasonAgainst(as);
    test.skipIf(reason !== undefined)(
      `reaches neither the host nor private addresses, by ${as}${reason ?? ""}`,
      async () => {
        const directory = await mkdtemp(join(tmpdir(), "agentfense-tun-"));
        const { uid, gid } = identityOf(as);
        const become = ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups", process.execPath, PROGRAM];
        const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
        const host = own.find(({ family, internal }) => family === "IPv4" && !internal)?.address ?? "192.168.0.1";
        const { stdout } = await run("unshare", ["--mount", "sh", "-c", PREPARE, "sh", directory, ...become, host], {
          timeout: 50_000,
        });
        await rm(directory, { recursive: true });
        expect(JSON.parse(stdout)).toEqual({
          devices: "lo\nnet0\n",
          unreachable: ["10.0.0.1", "169.254.169.254", "172.16.0.1", "192.168.0.1", "100.64.0.1", host],
          filter: "refused\n",
          resolver: "nameserver 198.18.0.53\n",
          leftOver: 0,
        });
      },
    );
  }

  const against = reasonAgainst("root");
  test.skipIf(against)(`asks for names whom the host asks now, and stays filtered${against ?? ""}`, async () => {
    const directory = await mkdtemp(join(tmpdir(), "agentfense-resolver-"));
    await chmod(directory, 0o755); // the box's user sets the network up
    const program = new URL("resolver-process.ts", import.meta.url).pathname;
    const prepared = ["sh", "-c", PREPARE, "sh", directory, "sh", "-c", OWN_HOST, "sh", directory];
    const { stdout } = await run("unshare", ["--mount", "--net", ...prepared, process.execPath, program]);
    await rm(directory, { recursive: true });
    expect(JSON.parse(stdout)).toEqual({
      before: "127.0.0.2",
      after: ["127.0.0.3", "127.0.0.3", "127.0.0.3"],
      withoutAny: "127.0.0.3",
      forbidden: "refused",
      moreHelpers: 0,
    });
  });
});
