import { hostname } from "node:os";
import { expect, test } from "vitest";
import { expectOnly } from "../outcomes.ts";
import { describeBoxes, HOSTNAME } from "./boxes.ts";
import { flat, NO_FILE } from "./facts.ts";

describeBoxes("ESC: the kernel's doors", (box) => {
  test("ESC-18 a filter is on every process, as tight as Docker's, for every way to number a call", async () => {
    const facts = await box.attempt<Record<string, { Seccomp: string }>>("ESC-18");
    expectOnly(Object.fromEntries(Object.entries(facts).map(([pid, { Seccomp }]) => [pid, Seccomp])), "2");
    expectOnly(await box.attempt("ESC-18-calls"), "EPERM", "ENOSYS");
    expectOnly(await box.attempt("ESC-18-numbers"), "EPERM", "ENOSYS", "SIGSYS", "SIGSEGV");
  });

  test("ESC-19 no user namespace can be made", async () => {
    const facts = await box.attempt<Record<string, unknown>>("ESC-19");
    const { clone3, "clone3 of nothing": clone3OfNothing, "a plain clone": fork, ...refused } = facts;
    expectOnly(flat(refused), "EPERM");
    expect({ clone3, clone3OfNothing, fork }).toEqual({ clone3: "ENOSYS", clone3OfNothing: "ENOSYS", fork: "OK" });
  });

  test("ESC-20 no other namespace can be made or entered", async () => {
    const { clone3, ...refused } = await box.attempt<Record<string, unknown>>("ESC-20");
    expectOnly(flat(refused), "EPERM");
    expectOnly(flat(clone3), "ENOSYS");
  });

  test("ESC-21 nothing can be mounted, the old way or the new", async () => {
    const { open_tree_attr: newest, ...facts } = await box.attempt<Record<string, string>>("ESC-21");
    expectOnly(facts, "EPERM");
    expect(["EPERM", "ENOSYS"], "newer than the filter's table of names").toContain(newest);
  });

  test("ESC-22 no mount can be changed, taken away or left behind", async () => {
    expectOnly(await box.attempt("ESC-22"), "EPERM");
  });

  test("ESC-23 no file can be opened by its handle", async () => {
    expectOnly(await box.attempt("ESC-23"), "EPERM");
  });

  test("ESC-30 the kernel's switches cannot be written, its memory and messages not read", async () => {
    const facts = await box.attempt<Record<string, unknown>>("ESC-30");
    const { content, switches, "writable elsewhere in /proc": elsewhere, ...rest } = facts;
    expect(rest).toEqual({ "writable in /proc/sys": [] });
    expect(switches, "the switches were looked at").toBe(true);
    // Pressure files are written to ask for a notice about the writer's own waiting.
    expect((elsewhere as string[]).filter((path) => !path.startsWith("/proc/pressure/"))).toEqual([]);
    const { kallsyms = "", ...secrets } = content as Record<string, string>;
    expect(kallsyms, "addresses of the kernel").not.toMatch(/^(?!0+ )[0-9a-f]+ /m);
    expectOnly(secrets, "", ...NO_FILE.map((name) => `<${name}>`));
  });

  test("ESC-31 /sys is absent or read-only: control groups, release agents, tracing", async () => {
    const { made, traces, ...facts } = await box.attempt<Record<string, unknown>>("ESC-31");
    expect(facts).toEqual({ writable: [], "release agents": [], "read-only": true });
    expectOnly(flat(made), ...NO_FILE);
    expect(["ENOENT", "EACCES", "EPERM"]).toContain(traces);
  });

  test("ESC-32 no program can be named for the kernel to run", async () => {
    expectOnly(await box.attempt("ESC-32"), ...NO_FILE);
  });

  test("ESC-33 modules, kexec, reboot, swap and accounting are refused", async () => {
    expectOnly(await box.attempt("ESC-33"), "EPERM");
  });

  test.runIf(process.arch === "x64")("ESC-34 ports of the machine are refused", async () => {
    expectOnly(await box.attempt("ESC-34"), "EPERM");
  });

  test("ESC-35 bpf, perf, userfaultfd and io_uring are refused", async () => {
    expectOnly(await box.attempt("ESC-35"), "EPERM", "ENOSYS");
  });

  test("ESC-36 keyrings are refused", async () => {
    expectOnly(await box.attempt("ESC-36"), "EPERM", "ENOSYS");
  });

  test("ESC-37 the kernel's log cannot be read", async () => {
    const { calls, ...files } = await box.attempt<Record<string, unknown>>("ESC-37");
    expectOnly(flat(calls), "EPERM");
    expectOnly(flat(files), "", ...NO_FILE.map((name) => `<${name}>`));
  });

  test("ESC-38 the host's name and clocks cannot be changed", async () => {
    const before = hostname();
    const { calls, name } = await box.attempt<Record<string, unknown>>("ESC-38");
    expect(name).toBe(HOSTNAME);
    expectOnly(flat(calls), "EPERM");
    expect(hostname()).toBe(before);
  });
});
