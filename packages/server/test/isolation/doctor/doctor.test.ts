import { describe, expect, test } from "vitest";
import type { HostFacts } from "../../../src/isolation/doctor/facts.ts";
import {
  isAtLeast,
  judgeHost,
  reasonSafeFromSetupEscape,
  workingRuntimes,
} from "../../../src/isolation/doctor/judgement.ts";

/** A machine on which everything is as it should be. */
const WELL: HostFacts = {
  nodeVersion: "26.1.0",
  architecture: "x64",
  kernelRelease: "6.12.9-amd64",
  isRoot: true,
  fuseDevice: "usable",
  fusermount: { path: "/usr/bin/fusermount3", setuid: true },
  passthroughBuilt: true,
  seccompActions: ["kill_process", "errno", "allow"],
  bwrap: { path: "/usr/bin/bwrap", version: "0.12.0", package: { kind: "dpkg", version: "0.12.0-1" } },
  namespaces: {
    attempt: { works: true },
    maxUserNamespaces: 60_000,
    unprivilegedClone: undefined,
    apparmor: { restricted: false, profile: undefined, spareProfile: undefined },
  },
  limits: { kind: "cgroup-v2", degradations: [] },
  perl: "/usr/bin/perl",
  setpriv: "/usr/bin/setpriv",
  networkHelpers: ["pasta", "nsenter", "iptables-restore"],
  docker: {
    reachable: true,
    socket: "/var/run/docker.sock",
    version: "28.0.1",
    runtimes: ["runc", "runsc"],
    cgroupDriver: "systemd",
    cgroupVersion: "2",
  },
};

const BLOCKED_BY_APPARMOR: HostFacts["namespaces"] = {
  attempt: { works: false, message: "bwrap: setting up uid map: Permission denied" },
  maxUserNamespaces: 60_000,
  unprivilegedClone: undefined,
  apparmor: { restricted: true, profile: undefined, spareProfile: undefined },
};

/** The findings that are not ok, with what they block. */
function complaints(facts: Partial<HostFacts>) {
  return judgeHost({ ...WELL, ...facts })
    .filter(({ verdict }) => verdict !== "ok")
    .map(({ check, verdict, blocks }) => ({ check, verdict, blocks }));
}

test("a machine with everything has nothing to complain about, and both runtimes work", () => {
  const findings = judgeHost(WELL);
  expect(findings.filter(({ verdict }) => verdict !== "ok")).toEqual([]);
  expect(workingRuntimes(findings)).toEqual(["bwrap", "docker"]);
});

test("every complaint says in one line how to fix it", () => {
  const nothing: HostFacts = {
    ...WELL,
    nodeVersion: "20.0.0",
    kernelRelease: "4.19.0",
    isRoot: false,
    fuseDevice: "absent",
    fusermount: undefined,
    seccompActions: [],
    bwrap: undefined,
    namespaces: { ...BLOCKED_BY_APPARMOR, attempt: undefined, maxUserNamespaces: 0 },
    limits: { kind: "rlimits", degradations: ["Memory is limited for each process.", "Delegate the controllers."] },
    perl: undefined,
    networkHelpers: [],
    docker: { reachable: false, socket: "/var/run/docker.sock", error: "ENOENT" },
  };
  for (const { verdict, fix, check } of judgeHost(nothing)) {
    if (verdict === "ok") continue;
    expect({ check, fix }).toEqual({ check, fix: expect.stringMatching(/^.{10,250}$/) });
  }
  expect(workingRuntimes(judgeHost(nothing))).toEqual([]);
});

describe("what stands in the way", () => {
  test.each<[string, Partial<HostFacts>, ReturnType<typeof complaints>]>([
    [
      "an old kernel",
      { kernelRelease: "5.4.0-200-generic" },
      [
        { check: "kernel", verdict: "failure", blocks: ["bwrap", "docker"] },
        { check: "fuse-passthrough", verdict: "warning", blocks: [] },
      ],
    ],
    [
      "a kernel before passthrough",
      { kernelRelease: "6.1.0-40-amd64" },
      [{ check: "fuse-passthrough", verdict: "warning", blocks: [] }],
    ],
    [
      "a kernel built without passthrough",
      { passthroughBuilt: false },
      [{ check: "fuse-passthrough", verdict: "warning", blocks: [] }],
    ],
    ["no FUSE", { fuseDevice: "absent" }, [{ check: "fuse-device", verdict: "failure", blocks: ["bwrap", "docker"] }]],
    [
      "a closed FUSE device",
      { fuseDevice: { error: "EACCES" } },
      [{ check: "fuse-device", verdict: "failure", blocks: ["bwrap", "docker"] }],
    ],
    ["root without fusermount3", { fusermount: undefined }, []],
    [
      "an ordinary user without fusermount3",
      { isRoot: false, fusermount: undefined },
      [
        { check: "fusermount3", verdict: "failure", blocks: ["bwrap", "docker"] },
        { check: "fuse-passthrough", verdict: "warning", blocks: [] },
      ],
    ],
    [
      "a fusermount3 that is not setuid",
      { isRoot: false, fusermount: { path: "/usr/bin/fusermount3", setuid: false } },
      [
        { check: "fusermount3", verdict: "failure", blocks: ["bwrap", "docker"] },
        { check: "fuse-passthrough", verdict: "warning", blocks: [] },
      ],
    ],
    [
      "no bwrap",
      { bwrap: undefined, namespaces: { ...WELL.namespaces, attempt: undefined } },
      [
        { check: "bwrap", verdict: "failure", blocks: ["bwrap"] },
        { check: "user-namespaces", verdict: "warning", blocks: [] },
      ],
    ],
    [
      "AppArmor without a profile for bwrap",
      { namespaces: BLOCKED_BY_APPARMOR },
      [
        { check: "user-namespaces", verdict: "failure", blocks: ["bwrap"] },
        { check: "apparmor", verdict: "failure", blocks: ["bwrap"] },
      ],
    ],
    ["AppArmor that lets bwrap through", { namespaces: { ...BLOCKED_BY_APPARMOR, attempt: { works: true } } }, []],
    [
      "an architecture without a filter",
      { architecture: "riscv64" },
      [{ check: "seccomp", verdict: "failure", blocks: ["bwrap"] }],
    ],
    ["no perl", { perl: undefined }, [{ check: "perl", verdict: "failure", blocks: ["bwrap"] }]],
    ["root without setpriv", { setpriv: undefined }, [{ check: "setpriv", verdict: "failure", blocks: ["bwrap"] }]],
    [
      "limits with gaps",
      { limits: { kind: "rlimits", degradations: ["No CPU quota.", "Delegate the controller cpu."] } },
      [{ check: "limits", verdict: "warning", blocks: [] }],
    ],
    ["no network helper", { networkHelpers: [] }, [{ check: "network-helper", verdict: "warning", blocks: [] }]],
    [
      "no Docker engine",
      { docker: { reachable: false, socket: "/var/run/docker.sock", error: "ECONNREFUSED" } },
      [{ check: "docker", verdict: "warning", blocks: ["docker"] }],
    ],
  ])("%s", (_what, facts, expected) => {
    expect(complaints(facts)).toEqual(expected);
  });
});

test("a missing perl is named as each distribution calls it", () => {
  const finding = judgeHost({ ...WELL, perl: undefined }).find(({ check }) => check === "perl");
  expect(finding?.fix).toBe(
    "install the package perl (Alpine, Arch), perl-interpreter (Fedora) or perl-base (Debian, Ubuntu)",
  );
});

describe("blocked namespaces get the fix of what blocks them", () => {
  test.each<[string, Partial<HostFacts["namespaces"]>, string]>([
    ["the maximum", { maxUserNamespaces: 0 }, "user.max_user_namespaces=15000"],
    ["Debian's older switch", { unprivilegedClone: false }, "kernel.unprivileged_userns_clone=1"],
    ["AppArmor", {}, "/etc/apparmor.d/bwrap"],
    [
      "AppArmor, with a profile at hand",
      { apparmor: { restricted: true, profile: undefined, spareProfile: "/usr/share/apparmor/extra-profiles/x" } },
      "cp /usr/share/apparmor/extra-profiles/x /etc/apparmor.d/",
    ],
    [
      "a container",
      { apparmor: { restricted: false, profile: undefined, spareProfile: undefined } },
      "--security-opt seccomp=unconfined",
    ],
  ])("%s", (_what, namespaces, fix) => {
    const findings = judgeHost({ ...WELL, namespaces: { ...BLOCKED_BY_APPARMOR, ...namespaces } });
    expect(findings.find(({ check }) => check === "user-namespaces")).toMatchObject({
      verdict: "failure",
      summary: "no box can be made: bwrap: setting up uid map: Permission denied",
      fix: expect.stringContaining(fix),
    });
  });
});

describe("GHSA-pxhw-h44j-8pfx", () => {
  test.each<[string, string | undefined, boolean]>([
    ["0.12.0", undefined, true],
    ["0.13.1", "0.13.1-1", true],
    ["1.0.0", undefined, true],
    ["0.11.2", undefined, false],
    ["0.9.0", undefined, false],
    // Ubuntu fixed it in …0.2 and took the fix back in …0.3.
    ["0.9.0", "0.9.0-1ubuntu0.1", false],
    ["0.9.0", "0.9.0-1ubuntu0.2", true],
    ["0.9.0", "0.9.0-1ubuntu0.3", false],
    ["0.6.1", "0.6.1-1ubuntu0.2", true],
    ["0.11.1", "0.11.1-1ubuntu0.2", true],
    ["0.11.1", "0.11.1-1ubuntu0.3", false],
    // No fixed package of Debian is known.
    ["0.8.0", "0.8.0-2+deb12u1", false],
    ["0.11.0", "0.11.0-2+deb13u1", false],
    ["unknown", undefined, false],
  ])("bwrap %s from package %s: fixed %s", (version, packageVersion, fixed) => {
    expect(reasonSafeFromSetupEscape(version, packageVersion) !== undefined).toBe(fixed);
  });

  test("an old bwrap is a warning that names the advisory, not an obstacle", () => {
    const bwrap = {
      path: "/usr/bin/bwrap",
      version: "0.8.0",
      package: { kind: "dpkg", version: "0.8.0-2+deb12u1" },
    } as const;
    const findings = judgeHost({ ...WELL, bwrap });
    expect(findings.find(({ check }) => check === "bwrap")).toMatchObject({
      verdict: "warning",
      summary: expect.stringContaining("GHSA-pxhw-h44j-8pfx"),
      fix: expect.stringContaining("0.12.0"),
    });
    expect(workingRuntimes(findings)).toContain("bwrap");
  });

  test("a version number of another package system proves nothing", () => {
    const bwrap = {
      path: "/usr/bin/bwrap",
      version: "0.9.0",
      package: { kind: "rpm", version: "0.9.0-1ubuntu0.2" },
    } as const;
    expect(judgeHost({ ...WELL, bwrap }).find(({ check }) => check === "bwrap")?.verdict).toBe("warning");
  });
});

test.each([
  ["6.9", "6.9", true],
  ["6.10.3-rc1", "6.9", true],
  ["6.8.12", "6.9", false],
  ["10", "6.9", true],
  ["5.6.0-0.bpo", "5.6", true],
  ["", "5.6", false],
])("version %s is at least %s: %s", (version, floor, expected) => {
  expect(isAtLeast(version, floor)).toBe(expected);
});
