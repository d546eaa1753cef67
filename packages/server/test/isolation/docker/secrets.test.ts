import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { eventually } from "../../../../../test/support/eventually.ts";
import { bash, describeDocker, finish, output } from "./arena.ts";

const FIND_SECRETS =
  "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | grep -aoE '[0-9a-f]{32}'; echo looked";

// Reads the variables of its wrapper out of the wrapper's memory, says that it has ended well, and stays.
const FORGE = `
import os, re, sys, time
wrapper = os.getppid()
ranges = [l.split()[0] for l in open(f"/proc/{wrapper}/maps") if l.split()[1].startswith("rw")]
memory = open(f"/proc/{wrapper}/mem", "rb", 0)
text = b""
for begin, end in (map(lambda x: int(x, 16), r.split("-")) for r in ranges):
    try:
        memory.seek(begin)
        text += memory.read(end - begin)
    except OSError:
        pass
mark, seal = (re.search(name + rb"=([0-9a-f]{32})", text)[1].decode() for name in (b"_n", b"_e"))
for descriptor in (1, 2):
    os.write(descriptor, f"\\x1e{mark} ended not-the-seal 0 0\\x1e".encode())
time.sleep(0.5)
os.write(1, b"still here")
if len(sys.argv) > 1:
    for descriptor in (1, 2):
        os.write(descriptor, f"\\x1e{mark} ended {seal} 0 0\\x1e".encode())
    time.sleep(1000)
os._exit(7)
`;

function reasonAgainstTracing(): string | undefined {
  const file = "/proc/sys/kernel/yama/ptrace_scope";
  if (!existsSync(file) || readFileSync(file, "utf8").trim() === "0") return undefined;
  return "Yama keeps processes from reading each other here";
}

describeDocker("what a script marks its words with", (arena) => {
  test("is in no command line and no environment, even if its variables came with the environment", async () => {
    const env = { _n: "mine", _e: "mine", _p: "mine", line: "mine" };
    const box = await arena.box({ env });
    const neighbour = await bash(box, "sleep 20");
    const shell = await box.openShell({ argv: ["/bin/sh"], env: {}, workdir: "/" });
    const terminal = await box.openTerminal({
      argv: ["/bin/sh", "-c", FIND_SECRETS],
      env: {},
      workdir: "/",
      size: { columns: 80, rows: 24 },
    });
    let seen = "";
    for await (const chunk of terminal.output) seen += String(chunk);
    expect(seen).toBe("looked\r\n");
    expect(await output(box, FIND_SECRETS)).toMatchObject({ exitCode: 0, stdout: "looked\n" });
    shell.commands.end(`${FIND_SECRETS}; exit 9\n`);
    shell.stderr.resume();
    shell.status.resume();
    seen = "";
    for await (const chunk of shell.stdout) seen += String(chunk);
    expect(seen).toBe("looked\n");
    expect(await shell.exit).toEqual({ exitCode: 9, outOfMemory: false });
    neighbour.kill();
    await finish(neighbour);
  });

  const reason = reasonAgainstTracing();
  if (reason !== undefined) process.stdout.write(`skipped: tracing the script: ${reason}\n`);
  test.skipIf(reason !== undefined)(
    "ends nothing without the seal; who traced the script for both is in the background with its own forgery",
    async () => {
      const box = await arena.box();
      const forge = (...args: string[]) =>
        box.run({ argv: ["/usr/bin/python3", "-c", FORGE, ...args], env: {}, workdir: "/", stdin: false });
      expect(await finish(await forge())).toMatchObject({ exitCode: 7, stdout: "still here" });
      expect(await finish(await forge("with the seal"))).toMatchObject({ exitCode: 0, stdout: "still here" });
      const python = "ps -eo args | grep -c '^/usr/bin/python3'";
      expect(
        (await output(box, `${python}; kill -9 $(ps -eo pid,args | awk '$2 ~ /python3/ { print $1 }')`)).stdout,
      ).toBe("1\n");
      await eventually(async () =>
        expect((await output(box, "ps -eo args | grep -c '^/bin/sleep'")).stdout, "scripts that wait").toBe("0\n"),
      );
    },
  );
});
