import { expect, test } from "vitest";
import { hierarchiesBelow, parseHierarchies } from "../../../src/isolation/limits/hierarchies.ts";
import { givenGroupPath } from "../../../src/isolation/limits/parents.ts";

const UNIFIED = `\
22 28 0:21 / /proc rw,nosuid - proc proc rw
29 22 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
`;

const HYBRID = `\
24 29 0:22 / /sys/fs/cgroup ro,nosuid shared:9 - tmpfs tmpfs ro,mode=755
30 24 0:25 / /sys/fs/cgroup/unified rw,nosuid shared:10 - cgroup2 cgroup2 rw
31 24 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:15 - cgroup cgroup rw,cpu,cpuacct
32 24 0:29 / /sys/fs/cgroup/memory rw,nosuid shared:16 - cgroup cgroup rw,memory
33 24 0:30 / /sys/fs/cgroup/systemd rw,nosuid shared:11 - cgroup cgroup rw,xattr,name=systemd
34 24 0:32 / /sys/fs/cgroup/pids ro,nosuid shared:17 - cgroup cgroup rw,pids
`;

test("a host with v2 only has one hierarchy, and the own group below its mount", () => {
  expect(parseHierarchies(UNIFIED, "0::/user.slice/user-1000.slice/session-2.scope\n")).toEqual([
    {
      version: 2,
      controllers: [],
      mountPoint: "/sys/fs/cgroup",
      ownGroup: "/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope",
    },
  ]);
});

test("co-mounted controllers are one hierarchy; a read-only mount is none", () => {
  const own = "6:name=systemd:/\n5:pids:/\n4:memory:/service\n3:cpu,cpuacct:/a/b\n0::/c\n";
  expect(parseHierarchies(HYBRID, own)).toEqual([
    {
      version: 1,
      controllers: ["name=systemd"],
      mountPoint: "/sys/fs/cgroup/systemd",
      ownGroup: "/sys/fs/cgroup/systemd",
    },
    {
      version: 1,
      controllers: ["memory"],
      mountPoint: "/sys/fs/cgroup/memory",
      ownGroup: "/sys/fs/cgroup/memory/service",
    },
    {
      version: 1,
      controllers: ["cpu", "cpuacct"],
      mountPoint: "/sys/fs/cgroup/cpu,cpuacct",
      ownGroup: "/sys/fs/cgroup/cpu,cpuacct/a/b",
    },
    {
      version: 2,
      controllers: [],
      mountPoint: "/sys/fs/cgroup/unified",
      ownGroup: "/sys/fs/cgroup/unified/c",
    },
  ]);
});

test("in a container without a cgroup namespace the mount shows a part, and the own group is found in it", () => {
  const mounts = "40 30 0:29 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
  const at = (own: string) => parseHierarchies(mounts, `4:memory:${own}\n`)[0]?.ownGroup;
  expect(at("/docker/abc")).toBe("/sys/fs/cgroup/memory");
  expect(at("/docker/abc/inner")).toBe("/sys/fs/cgroup/memory/inner");
  expect(at("/docker/abcdef")).toBe("/sys/fs/cgroup/memory");
  expect(at("/../other")).toBe("/sys/fs/cgroup/memory");
});

test("spaces in a mount point are escaped, and the shortest of several mounts counts", () => {
  const mounts =
    "40 30 0:29 / /var/lib/long/copy/of/it rw - cgroup2 none rw\n41 30 0:29 / /c\\040group rw - cgroup2 none rw\n";
  expect(parseHierarchies(mounts, "0::/\n").map(({ mountPoint }) => mountPoint)).toEqual(["/c group"]);
});

test("a host without control groups has no hierarchies", () => {
  expect(parseHierarchies("", "")).toEqual([]);
  expect(parseHierarchies("22 28 0:21 / /proc rw - proc proc rw\n", "0::/\n")).toEqual([]);
});

test("a root narrows the choice to what is mounted below it", () => {
  const all = parseHierarchies(HYBRID, "4:memory:/\n0::/\n");
  expect(hierarchiesBelow("/sys/fs/cgroup/unified", all).map(({ version }) => version)).toEqual([2]);
  expect(hierarchiesBelow("/sys/fs/cgroup/mem", all)).toEqual([]);
  expect(hierarchiesBelow("/", all)).toEqual(all);
});

test("a given group is a path from the top of the hierarchies, with or without the mount point before it", () => {
  const all = parseHierarchies(HYBRID, "4:memory:/\n0::/\n");
  expect(givenGroupPath("/agents.slice/a", all)).toBe("/agents.slice/a");
  expect(givenGroupPath("/sys/fs/cgroup/memory/agents", all)).toBe("/agents");
  for (const wrong of ["agents", "/a/../../b", ""]) {
    expect(() => givenGroupPath(wrong, all)).toThrow(expect.objectContaining({ code: "INVALID_ARGUMENT" }));
  }
});
