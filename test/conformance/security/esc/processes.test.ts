import { spawn } from "node:child_process";
import { expect, test } from "vitest";
import { expectOnly } from "../outcomes.ts";
import { attack, describeBoxes, SERVER_SECRET } from "./boxes.ts";
import { expectNowhere, flat } from "./facts.ts";

interface IdentityFacts {
  readonly uid: number[];
  readonly gid: number[];
  readonly groups: number[];
  readonly "become root": Record<string, string>;
  readonly core_pattern: string;
}

interface WrapperFacts {
  readonly ptrace: Record<string, string>;
  readonly "stolen descriptors": string[];
  readonly found: Record<string, string | string[]>;
}

/** Descriptors that lead nowhere: pipes, events, and the devices everybody has. */
const HARMLESS_DESCRIPTOR =
  /^(pipe|socket):\[\d+\]$|^anon_inode:(\[\w+\]|inotify|pidfd)$|^\/dev\/(null|zero|urandom|random|tty|pts\/\d+)$|^\/memfd:[\w-]+ \(deleted\)$|^\/workspace(\/|$)/;

describeBoxes("ESC: processes", (box) => {
  test("ESC-15 the agent is no root, inside or to the host's kernel", async () => {
    const { facts, identity, end } = await box.sandbox.begin<IdentityFacts>("ESC-15");
    await end();
    expect(identity.uid).not.toBe(0);
    expect(identity.gid).not.toBe(0);
    expect(facts.uid).not.toContain(0);
    expect(facts.gid).not.toContain(0);
    expect(facts.groups).toEqual([]);
    expectOnly(facts["become root"], "EPERM", "EINVAL");
    expect(["EACCES", "EROFS"]).toContain(facts.core_pattern);
  });

  test("ESC-16 no process has a capability or gets one, and no device node can be made anywhere", async () => {
    const { processes, ...gains } = await box.attempt<Record<string, unknown>>("ESC-16");
    expectOnly(flat(processes), "0000000000000000");
    expectOnly(flat(gains), "EPERM");
    expectOnly(await box.attempt("ESC-16-nodes"), "EPERM", "EROFS", "EACCES");
  });

  test("ESC-17 no program gains privileges, by set-id bits or file capabilities", async () => {
    const facts = await box.attempt<Record<string, unknown>>("ESC-17");
    expectOnly(flat(facts.no_new_privs), "1");
    expect(flat(facts.ran), "ids or capabilities a program was seen with").toEqual({});
    expect(facts["setuid of the codebase"]).toBe(facts["own uid"]);
    expectOnly(
      flat(facts["capable of the codebase"]),
      ...["Inh", "Prm", "Eff", "Bnd", "Amb"].map((set) => `Cap${set}:\t${"0".repeat(16)}`),
    );
    expect(facts["clear no_new_privs"]).toBe("EINVAL");
  });

  test("ESC-24 /proc leads to the sandbox's own root only, and to no descriptor of the host", async () => {
    const facts = await box.attempt<Record<string, Record<string, unknown>>>("ESC-24", { outside: box.host.outside });
    const refused = ["<EACCES>", "<EPERM>", "<ENOENT>"];
    for (const [pid, { root, cwd, exe: _, descriptors, secret, ...listings }] of Object.entries(facts)) {
      expect(["/", ...refused], `root of ${pid}`).toContain(root);
      expect(["/", "/workspace", ...refused], `working directory of ${pid}`).toContain(cwd);
      expectOnly(flat(listings), "this root", ...refused);
      expectOnly(flat(secret), ...refused);
      if (typeof descriptors === "string") expect(refused).toContain(descriptors);
      else expect(Object.values(descriptors as object).filter((link) => !HARMLESS_DESCRIPTOR.test(link))).toEqual([]);
    }
    expectNowhere(facts, box.host.ownPaths);
  });

  test("ESC-25 no command line names a path of the host", async () => {
    const facts = await box.attempt("ESC-25");
    expectNowhere(facts, [...box.host.ownPaths, "--bind", "--ro-bind"]);
  });

  test("ESC-26 the server's environment reaches no process inside, and a request's acts on none outside", async () => {
    const { outside } = box.host;
    const facts = await box.attempt<{ own: Record<string, string>; all: Record<string, string> }>("ESC-26");
    expectNowhere(facts, [SERVER_SECRET, "AGENTFENSE_TEST_SECRET", ...box.host.ownPaths]);
    const usual = ["PATH", "HOME", "LANG", "TERM", "USER", "LOGNAME", "EMAIL", "SHELL", "SHLVL", "PWD", "HOSTNAME"];
    expect(Object.keys(facts.own).filter((name) => !usual.includes(name))).toEqual([]);
    for (const shell of [undefined, "/bin/bash", "/bin/sh"]) {
      const env = {
        LD_PRELOAD: `${outside}/preload.so`,
        LD_DEBUG: "files",
        LD_DEBUG_OUTPUT: `${outside}/loader`,
        BASH_ENV: `${outside}/hook.sh`,
        ENV: `${outside}/hook.sh`,
        NODE_OPTIONS: `--require ${outside}/hook.js`,
        PYTHONSTARTUP: `${outside}/hook.sh`,
        GCONV_PATH: outside,
        PATH: `${outside}:/usr/bin:/bin`,
        TMPDIR: outside,
      };
      const command = shell === undefined ? "echo ran" : [shell, "-c", "echo ran"];
      const { stdout } = await box.sandbox.exec({ command, env });
      expect(stdout, "what the loader says about its work may come along").toContain("ran\n");
    }
  });

  test("ESC-27 a command starts with its three standard descriptors and no other", async () => {
    const open = (facts: unknown) => (facts as { open: number[] }).open;
    expect(open(await box.attempt("ESC-27"))).toEqual([0, 1, 2]);
    expect(open(await box.sandbox.onTerminal("ESC-27"))).toEqual([0, 1, 2]);
    const { stdout } = await box.sandbox.inSession("python3 -B /workspace/inside.py ESC-27");
    expect(open(JSON.parse(stdout)), "in a session").toEqual([0, 1, 2]);
  });

  test("ESC-28 processes of the host are neither visible nor in reach of a signal", async () => {
    const { identity, end } = await box.sandbox.begin<IdentityFacts>("ESC-15");
    await end();
    // A process of the same user: nothing but the namespace protects it.
    const bystander = spawn("/bin/sleep", ["60"], { ...identity, stdio: "ignore" });
    try {
      const pids = [bystander.pid, process.pid, process.ppid, box.serverPid];
      const facts = await box.attempt<Record<string, unknown>>("ESC-28", { pids });
      expectOnly(flat(facts.tried), "ESRCH", "ENOENT", "EPERM");
      expect(flat(facts.tried)).toMatchObject({
        [`${bystander.pid} kill`]: "ESRCH",
        [`${bystander.pid} /proc`]: "ENOENT",
      });
      const programs = Object.values(facts.visible as Record<string, string>);
      expect(programs.filter((name) => /node|vitest|dockerd|containerd|systemd/.test(name))).toEqual([]);
      expect(programs.length).toBeLessThan(12);
      expect(facts.hidden).toEqual([]);
      expect(bystander.exitCode ?? bystander.signalCode).toBeNull();
    } finally {
      bystander.kill("SIGKILL");
    }
  });

  test("ESC-29 the wrapper in the sandbox gives nothing away, whoever traces it", async () => {
    const texts = [...box.host.ownPaths, SERVER_SECRET].map((text) => Buffer.from(text).toString("hex"));
    const facts = await box.attempt<WrapperFacts>("ESC-29", { texts });
    const unreadable = ["EACCES", "EPERM", "ENOENT", "ESRCH"];
    const found = Object.values(facts.found).filter((answer) => !unreadable.includes(String(answer)));
    expect(found.flat().map((hex) => Buffer.from(hex, "hex").toString())).toEqual([]);
    expect(facts["stolen descriptors"].filter((link) => !HARMLESS_DESCRIPTOR.test(link))).toEqual([]);
  });

  test("ESC-50 a crash leaves no core, inside or on the host", async () => {
    expect(await box.attempt("ESC-50")).toEqual({
      limit: [0, 0],
      raise: "refused",
      signal: "SIGSEGV",
      core: false,
      "new files": { "/workspace/work": [], "/tmp": [], "/workspace": [] },
    });
  });

  test("priority, scheduling and limits cannot be raised above those of others", async () => {
    expectOnly(flat(await box.attempt("more-than-others")), "EPERM", "EACCES", "EROFS", "refused", "unlimited");
  });

  test("LIVE-03 a command cannot speak for the wrapper: how it ends is how it ended", async () => {
    const sandbox = await box.another();
    const { exitCode, stdout } = await sandbox.exec({ command: attack("speak-for-the-wrapper") });
    expect({ exitCode, end: stdout.trimEnd().split("\n").at(-1) }).toEqual({ exitCode: 7, end: "really the end" });
    // A session whose channel somebody is seen to hold is ended, which is no lie either.
    const inSession = await sandbox.inSession(attack("speak-for-the-wrapper").join(" ")).then(
      ({ exitCode: code }) => code,
      (error: { code?: string }) => error.code,
    );
    expect([7, "SESSION_CLOSED"], "in a session").toContain(inSession);
  });

  test("a command that kills and disturbs all it can reach leaves the sandbox in order", async () => {
    const sandbox = await box.another();
    await sandbox.exec({ command: "kill -9 -1; true" });
    await sandbox.exec({
      command: "for f in /proc/[0-9]*/fd/[0-9]*; do [ -p $f ] && timeout 1 sh -c 'echo 1 junk >$0' $f; done; true",
    });
    const { stdout } = await sandbox.exec({ command: "echo still here" });
    expect(stdout).toBe("still here\n");
  });
});
