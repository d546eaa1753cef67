import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { DockerBackend } from "../../../src/isolation/docker/backend.ts";
import { MountHost } from "../../../src/isolation/index.ts";
import { bash, describeDocker, finish, output } from "./arena.ts";

const OK = { exitCode: 0, outOfMemory: false };

describeDocker("a box in Docker", (arena) => {
  test("starts once and ends once; asking for either twice, and while something runs, is fine; nothing is left", async () => {
    const box = await (await arena.backend()).createBox(await arena.spec());
    await expect(bash(box, "true")).rejects.toMatchObject({ code: "SANDBOX_NOT_RUNNING" });
    await Promise.all([box.start(), box.start()]);
    expect(await box.shells()).toEqual(expect.arrayContaining(["/bin/sh", "/bin/dash"]));
    expect((await box.shells())[0]).toBe("/bin/bash");
    const run = await bash(box, "echo begun; sleep 8881");
    const finished = finish(run);
    const [second] = await Promise.all([
      bash(box, "sleep 8882").catch((error: unknown) => error),
      box.destroy(),
      box.destroy(),
    ]);
    expect(await finished).toMatchObject({ exitCode: 137, outOfMemory: false });
    expect(await arena.containers()).toEqual([]);
    if (!(second instanceof Error)) await (second as Awaited<ReturnType<typeof bash>>).exit;
    await expect(bash(box, "true")).rejects.toMatchObject({ code: "SANDBOX_NOT_RUNNING" });
    const unused = await (await arena.backend()).createBox(await arena.spec());
    await unused.destroy();
    await expect(unused.start()).rejects.toMatchObject({ code: "SANDBOX_NOT_RUNNING" });
    expect(await arena.containers()).toEqual([]);
    expect(await arena.engine.docker("volume", "ls", "-q")).toBe("");
  });

  test("has no privilege, no device, no network, and nothing to write but its workspace and memory", async () => {
    const box = await arena.box();
    const { stdout } = await output(
      box,
      "grep -E '^(CapEff|CapPrm|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\t' ' '; id -u; id -g; " +
        "ls /sys/class/net 2>/dev/null || python3 -c 'import socket; print([n for _, n in socket.if_nameindex()])'; " +
        "touch /etc/x /usr/x /x 2>&1 | grep -c 'Read-only'; for d in /tmp /var/tmp /run /dev/shm /workspace; do " +
        "echo x >$d/x && echo $d; done; ulimit -c; hostname 2>/dev/null || cat /proc/sys/kernel/hostname",
    );
    expect(stdout.split("\n")).toEqual([
      "CapPrm: 0000000000000000",
      "CapEff: 0000000000000000",
      "CapBnd: 0000000000000000",
      "CapAmb: 0000000000000000",
      "NoNewPrivs: 1",
      "Seccomp: 2",
      String(box.owner.uid),
      String(box.owner.gid),
      "lo",
      "3",
      "/tmp",
      "/var/tmp",
      "/run",
      "/dev/shm",
      "/workspace",
      "0",
      "sandbox",
      "",
    ]);
    const flags = await output(box, "grep -E ' (/tmp|/var/tmp|/run|/dev/shm) ' /proc/self/mounts");
    for (const line of flags.stdout.trim().split("\n")) expect(line).toMatch(/nosuid,nodev/);
    const devices = await output(box, "ls -I core /dev"); // a link to /proc/kcore, which is masked
    expect(devices.stdout.split("\n").sort()).toEqual([
      "",
      "fd",
      "full",
      "mqueue",
      "null",
      "ptmx",
      "pts",
      "random",
      "shm",
      "stderr",
      "stdin",
      "stdout",
      "tty",
      "urandom",
      "zero",
    ]);
    expect(await output(box, "unshare -U true; mknod /tmp/n c 1 3")).toMatchObject({ exitCode: 1, stdout: "" });
    expect((await output(box, "head -c 100000000 /dev/zero >/tmp/big")).stderr).toContain("No space left");
  });

  test("holds its limits, and tells what it uses", async () => {
    const box = await arena.box({
      limits: { memoryBytes: 64 * 1024 ** 2, cpuQuota: 50_000, cpuShares: 512, pids: 50 },
    });
    const id = await arena.container();
    const host = JSON.parse(await arena.engine.docker("inspect", "--format", "{{json .HostConfig}}", id)) as object;
    expect(host).toMatchObject({
      Memory: 64 * 1024 ** 2,
      MemorySwap: 64 * 1024 ** 2,
      CpuQuota: 50_000,
      CpuPeriod: 100_000,
      CpuShares: 512,
      PidsLimit: 55,
    });
    const usage = await box.usage();
    expect(usage.pids).toBeGreaterThanOrEqual(3);
    expect(usage.memoryBytes).toBeGreaterThan(100_000);
    expect(usage.cpuMicros).toBeGreaterThan(0);
    const beganMs = performance.now();
    const burner = await bash(box, "timeout 1 bash -c 'while :; do :; done'");
    await finish(burner);
    const used = ((await box.usage()).cpuMicros ?? 0) - (usage.cpuMicros ?? 0);
    // A share of whatever time it took, and one period for each end.
    expect(used / 1000 / (performance.now() - beganMs + 200)).toBeLessThan(0.5 * 1.1);
  });

  test("has a network of its own when asked, the engine's own otherwise only by name", async () => {
    const box = await arena.box({ network: "private" });
    expect(
      (await output(box, "python3 -c 'import socket; print(sorted(n for _, n in socket.if_nameindex()))'")).stdout,
    ).toBe("['eth0', 'lo']\n");
    expect((await output(box, "cat /etc/resolv.conf")).exitCode).toBe(0);
    const host = await arena.box({ network: "host" });
    expect(
      (await output(host, "python3 -c 'import socket; print([n for _, n in socket.if_nameindex()])'")).stdout,
    ).toContain("docker0");
  });

  test("runs under another OCI runtime by name, and refuses one the engine does not have", async () => {
    const box = await arena.box({ ociRuntime: arena.engine.otherRuntime });
    expect(await output(box, "echo other")).toEqual({ ...OK, stdout: "other\n", stderr: "" });
    const backend = await arena.backend();
    await expect(backend.createBox(await arena.spec({ ociRuntime: "nothing" }))).rejects.toMatchObject({
      code: "RUNTIME_UNAVAILABLE",
      hint: expect.stringContaining(arena.engine.otherRuntime),
    });
  });

  test("refuses images that are absent, not allowed, or no images; says how to get one", async () => {
    const backend = await arena.backend();
    await expect(backend.createBox(await arena.spec({ image: "absent:1" }))).rejects.toMatchObject({
      code: "IMAGE_NOT_FOUND",
      hint: "docker pull absent:1",
    });
    for (const image of ["-v", "--privileged", "A B", "x/../y", "host:99999999/x", "", "a".repeat(600)]) {
      await expect(backend.createBox(await arena.spec({ image }))).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    }
    const strict = await arena.backend({ allowedImages: ["only:this"] });
    await expect(strict.createBox(await arena.spec())).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    const pulling = await arena.backend({ allowPull: true });
    const lines: string[] = [];
    // The engine's network leads nowhere, so the pull fails; that it was tried is what counts.
    const attempt = pulling.createBox(await arena.spec({ image: "localhost:1/absent:1" }), {
      onProgress: (line) => lines.push(line),
    });
    await expect(attempt).rejects.toMatchObject({ code: "IMAGE_NOT_FOUND" });
    expect(lines).toEqual(["pulling localhost:1/absent:1"]);
  });

  test("of a server that died is removed by the next one, those of the living are not", async () => {
    const [nameOfDead, nameOfAlive] = [`dead-${arena.name}`, `alive-${arena.name}`];
    const dead = await arena.backend({ instance: nameOfDead });
    const alive = await arena.backend({ instance: nameOfAlive });
    const orphan = await dead.createBox(await arena.spec());
    const other = await alive.createBox(await arena.spec());
    await Promise.all([orphan.start(), other.start()]);
    expect(await arena.containers()).toHaveLength(2);
    await alive.removeOrphans([nameOfDead, `never-there-${arena.name}`]);
    expect(await arena.containers()).toEqual([expect.stringContaining(`agentfense-${nameOfAlive}-`)]);
  });

  test("shows a guarded workspace: writes land in the delta, hidden files do not exist", async () => {
    const place = await arena.directory();
    const [code, mountPoint, delta] = [join(place, "code"), join(place, "mount"), join(place, "delta")];
    for (const path of [code, mountPoint, join(code, "secrets")]) await mkdir(path);
    await writeFile(join(code, "file"), "of the codebase\n");
    await writeFile(join(code, "secrets/key"), "secret\n");
    const host = await MountHost.start();
    arena.onTidy(() => host.close());
    const backend = await arena.backend();
    const box = await backend.createBox(await arena.spec({ mounts: [{ source: mountPoint, target: "/workspace" }] }));
    await host.mount({
      mountPoint,
      lowers: [code],
      delta,
      owner: box.owner,
      rules: [
        { pattern: "**/*", permission: "write" },
        { pattern: "/secrets/**", permission: "none", priority: 100 },
      ],
    });
    await box.start();
    expect(
      await output(box, "ls; cat file; cat secrets/key; echo changed >file; mkdir new; echo x >new/y; stat -c %u file"),
    ).toEqual({
      ...OK,
      stdout: `file\nof the codebase\n${box.owner.uid}\n`,
      stderr: "cat: secrets/key: No such file or directory\n",
    });
    const mount = await output(box, "grep ' /workspace ' /proc/self/mountinfo");
    expect(mount.stdout).toMatch(/ \/workspace rw,nosuid,nodev\S* - fuse/);
    expect(await readFile(join(code, "file"), "utf8")).toBe("of the codebase\n");
    expect(await readFile(join(delta, "tree/file"), "utf8")).toBe("changed\n");
    expect(await readFile(join(delta, "tree/new/y"), "utf8")).toBe("x\n");
    await box.destroy();
  });
});

test("without an engine the runtime is unavailable, and the error says what to do", async () => {
  await expect(
    DockerBackend.open({ instance: "x", directory: "/nonexistent", socketPath: "/nonexistent/socket" }),
  ).rejects.toMatchObject({
    code: "RUNTIME_UNAVAILABLE",
    hint: expect.stringContaining("systemctl start docker"),
  });
});
