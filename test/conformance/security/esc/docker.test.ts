import { expect, test } from "vitest";
import { expectOnly } from "../outcomes.ts";
import { describeBoxes } from "./boxes.ts";
import { flat } from "./facts.ts";

interface Container {
  readonly Config: { readonly User: string; readonly Image: string };
  readonly Mounts: readonly { readonly Type: string; readonly Destination: string; readonly Propagation: string }[];
  readonly HostConfig: {
    readonly Privileged: boolean;
    readonly ReadonlyRootfs: boolean;
    readonly CapDrop: readonly string[];
    readonly CapAdd: readonly string[] | null;
    readonly SecurityOpt: readonly string[];
    readonly NetworkMode: string;
    readonly PidMode: string;
    readonly IpcMode: string;
    readonly UTSMode: string;
    readonly CgroupnsMode: string;
    readonly Devices: readonly unknown[] | null;
    readonly Binds: readonly string[] | null;
    readonly VolumesFrom: readonly string[] | null;
  };
}

describeBoxes(
  "ESC: the container",
  (box) => {
    test("ESC-52 the container has no privilege, whatever the image says, and its root is read-only", async () => {
      const name = (await box.engine.docker("ps", "--format", "{{.Names}}"))
        .split("\n")
        .find((line) => line.endsWith(box.sandbox.id));
      const [container] = JSON.parse(await box.engine.docker("inspect", name ?? "")) as [Container];
      const { HostConfig: host, Config: config, Mounts: mounts } = container;
      expect(config.User).toMatch(/^[1-9]\d*:[1-9]\d*$/);
      expect(host).toMatchObject({
        Privileged: false,
        ReadonlyRootfs: true,
        CapDrop: ["ALL"],
        NetworkMode: "none",
        PidMode: "",
        IpcMode: "private",
        UTSMode: "",
        CgroupnsMode: "private",
      });
      expect([
        ...(host.CapAdd ?? []),
        ...(host.Devices ?? []),
        ...(host.Binds ?? []),
        ...(host.VolumesFrom ?? []),
      ]).toEqual([]);
      expect(host.SecurityOpt.some((option) => /^no-new-privileges(:true)?$/.test(option))).toBe(true);
      expect(host.SecurityOpt.some((option) => option.startsWith("seccomp="))).toBe(true);
      expect(host.SecurityOpt.filter((option) => option.includes("unconfined"))).toEqual([]);
      expect(mounts.map(({ Type, Destination, Propagation }) => [Type, Destination, Propagation]).toSorted()).toEqual([
        ["bind", "/home/agent", "rprivate"],
        ["bind", "/workspace", "rprivate"],
      ]);
      expectOnly(flat(await box.attempt("ESC-35")), "EPERM", "ENOSYS");
      const { stdout } = await box.sandbox.exec({
        command: "id -u; touch /planted 2>&1; grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status",
      });
      expect(stdout).toMatch(/^[1-9]\d*\n.*Read-only file system\nNoNewPrivs:\t1\nSeccomp:\t2\n$/s);
    });

    test("an image cannot ask for a user, a volume of the host, a variable of the loader or a program to start", async () => {
      const { engine } = box;
      const made = (await engine.docker("create", engine.image, "true")).trim();
      const wishes = [
        "USER root",
        "VOLUME /volume",
        "ENV LD_PRELOAD=/nowhere.so",
        'ENTRYPOINT ["/bin/false"]',
        "WORKDIR /proc/1",
      ];
      const image = "agentfense-hostile:latest";
      await engine.docker("commit", ...wishes.flatMap((wish) => ["--change", wish]), made, image);
      await engine.docker("rm", made);
      const sandbox = await box.another({ image });
      const { stdout } = await sandbox.exec({
        command: "id -u; grep ^CapEff /proc/self/status; grep ' /volume ' /proc/mounts; pwd",
      });
      const [uid, capabilities, ...rest] = stdout.trim().split("\n");
      expect(uid).toMatch(/^[1-9]\d+$/);
      expect(capabilities).toBe(`CapEff:\t${"0".repeat(16)}`);
      expect(rest.at(-1)).toBe("/workspace");
      const volume = rest.slice(0, -1);
      expect(volume.filter((line) => !line.startsWith("tmpfs /volume tmpfs "))).toEqual([]);
    });
  },
  { runtime: "docker" },
);
