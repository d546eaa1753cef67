import { lstat, mkdir, mkdtemp, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type BoxedWorkspace, listChanges, type SandboxEvent, type SandboxSpec } from "@agentfense/server/isolation";
import { expect } from "vitest";
import { withoutHanging } from "../../support/eventually.ts";

// The home of a sandbox: on disk, under the quota of the delta, kept over stop and start, and no part of its changes.

export interface HomeTarget {
  reality(title: string, body: () => Promise<void>): void;
  running(extra?: Partial<SandboxSpec>): Promise<BoxedWorkspace>;
  make(extra?: Partial<SandboxSpec>): Promise<BoxedWorkspace>;
  /** Its next life, of the same delta and home. */
  again(sandbox: BoxedWorkspace): Promise<BoxedWorkspace>;
  /** A place for deltas and homes. */
  directory(): string;
  project(): string;
}

const MIB = 1024 * 1024;
const RULES = [{ pattern: "**/*", permission: "write" }] as const;

/** A package as small as pip takes one, made by the python that will use it. */
const WHEEL = `import zipfile
with zipfile.ZipFile("/tmp/answer-1-py3-none-any.whl", "w") as wheel:
  wheel.writestr("answer.py", "word = 42\\n")
  wheel.writestr("answer-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: answer\\nVersion: 1\\n")
  wheel.writestr("answer-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
  wheel.writestr("answer-1.dist-info/RECORD", "answer.py,,\\nanswer-1.dist-info/METADATA,,\\nanswer-1.dist-info/WHEEL,,\\nanswer-1.dist-info/RECORD,,\\n")`;

export function describeHome({ reality, running, make, again, directory, project }: HomeTarget): void {
  const sh = async (sandbox: BoxedWorkspace, command: string): Promise<string> => {
    const { stdout, stderr } = await withoutHanging(() => sandbox.exec({ command, timeoutMs: 60_000 }));
    return `${stdout}${stderr}`;
  };
  const workspace = async (): Promise<{ delta: string; workspaces: SandboxSpec["workspaces"] }> => {
    const delta = await mkdtemp(join(directory(), "delta-"));
    return { delta, workspaces: [{ lowers: [project()], delta, rules: RULES }] };
  };

  reality("belongs to the box's user alone, and is where $HOME, ~ and the password file say", async () => {
    const sandbox = await running();
    const look = 'stat -c "%a %u %g" ~; id -u; id -g; echo ~ $HOME; cd && pwd; mkdir -p ~/.config/x && echo made';
    const [mode, uid, gid, ...rest] = (await sh(sandbox, look)).trim().split("\n");
    expect(mode).toBe(`700 ${uid} ${gid}`);
    expect(rest).toEqual(["/home/agent /home/agent", "/home/agent", "made"]);
  });

  reality("keeps files, modes, links and times over stop and start; /tmp and /dev/shm are empty again", async () => {
    let sandbox = await running();
    const places = "/tmp/kept /dev/shm/kept ~/kept";
    await sh(sandbox, `for f in ${places}; do echo kept > $f; done`);
    expect(await sh(sandbox, `cat ${places}`)).toBe("kept\nkept\nkept\n");
    await sh(
      sandbox,
      "cd; mkdir -p a/b; echo x > a/b/c; chmod 640 a/b/c; ln -s b/c a/l; ln a/b/c a/h; touch -d @1 kept",
    );
    sandbox = await again(sandbox);
    expect(await sh(sandbox, `cat ${places} 2>/dev/null`)).toBe("kept\n");
    const look = 'cd; cat a/l; stat -c "%a %h" a/b/c; stat -c %Y kept; readlink a/l';
    expect(await sh(sandbox, look)).toBe("x\n640 2\n1\nb/c\n");
  });

  reality("git's settings for the user are there after a stop", async () => {
    let sandbox = await running();
    await sh(sandbox, "git config --global user.name Somebody");
    sandbox = await again(sandbox);
    expect(await sh(sandbox, "git config --global user.name")).toBe("Somebody\n");
  });

  reality("what pip installs for the user can be imported by the next command, and after a stop", async () => {
    let sandbox = await running();
    await sandbox.exec({ command: ["python3", "-c", WHEEL] });
    const options = "--user --no-index --no-deps --break-system-packages --no-warn-script-location";
    const installed = await sh(sandbox, `python3 -m pip install -q ${options} /tmp/answer-1-py3-none-any.whl`);
    const use = "python3 -c 'import answer; print(answer.word)'";
    expect([installed, await sh(sandbox, use)]).toEqual(["", "42\n"]);
    sandbox = await again(sandbox);
    expect(await sh(sandbox, use)).toBe("42\n");
  });

  reality("npm finds its cache again after a stop", async () => {
    let sandbox = await running();
    const pack = `mkdir package && echo '{"name":"answer","version":"1.0.0"}' > package/package.json && tar czf answer.tgz package`;
    await sh(sandbox, `cd /tmp && ${pack} && npm cache add ./answer.tgz`);
    sandbox = await again(sandbox);
    expect(await sh(sandbox, "npm cache verify")).toMatch(/Content verified: 1 /);
  });

  reality("has one quota of bytes with the delta: what one holds the other cannot", async () => {
    const { delta, workspaces } = await workspace();
    const events: SandboxEvent[] = [];
    const spec = { workspaces, limits: { diskBytes: 8 * MIB }, onEvent: (event: SandboxEvent) => events.push(event) };
    let sandbox = await running(spec);
    const fill = (file: string, mib: number): string =>
      `head -c ${mib * MIB} /dev/zero > ${file} && echo fits || rm -f ${file}`;
    expect(await sh(sandbox, fill("~/a", 5))).toBe("fits\n");
    expect(await sh(sandbox, fill("output/b", 5))).toMatch(/Disk quota exceeded/);
    expect(await sh(sandbox, fill("output/b", 2))).toBe("fits\n");
    expect(await sh(sandbox, fill("~/c", 2))).toMatch(/Disk quota exceeded/);
    expect(events).toContainEqual(expect.objectContaining({ kind: "quota_exceeded", path: "~/c" }));
    const free = "df -B1M --output=size,avail ~ /workspace | tail -2 | awk '{ print $1, $2 }'";
    expect(new Set((await sh(sandbox, free)).trim().split("\n"))).toEqual(new Set(["8 1"]));
    // Counted anew when it starts again, both of them.
    sandbox = await again(sandbox);
    expect(await sh(sandbox, fill("~/c", 2))).toMatch(/Disk quota exceeded/);
    expect(await sh(sandbox, `rm output/b; ${fill("~/c", 2)}`)).toBe("fits\n");
    expect(await readdir(join(delta, "home"))).toEqual(expect.arrayContaining(["a", "c"]));
  });

  reality("has one quota of files with the delta", async () => {
    const { workspaces } = await workspace();
    const sandbox = await running({ workspaces, limits: { diskFiles: 100 } });
    const most = (place: string): string =>
      `cd ${place}; i=0; while [ $i -lt 200 ] && : > f$i; do i=$((i+1)); done 2>/dev/null; echo $i`;
    const inHome = Number(await sh(sandbox, most("~")));
    expect(inHome).toBeGreaterThan(90);
    expect(inHome).toBeLessThanOrEqual(100);
    expect(Number(await sh(sandbox, most("/workspace")))).toBe(100 - inHome);
    await sh(sandbox, "rm ~/f?");
    expect(Number(await sh(sandbox, `${most("/workspace")}`))).toBeGreaterThan(0);
  });

  reality("has rules of its own: none of the workspace's hold in it, and none of its in the workspace", async () => {
    const delta = await mkdtemp(join(directory(), "delta-"));
    const rules = [
      { pattern: "**/*", permission: "read" },
      { pattern: "**/hidden*", permission: "none", priority: 1 },
      { pattern: "/output/**", permission: "write" },
    ] as const;
    const sandbox = await running({ workspaces: [{ lowers: [project()], delta, rules }] });
    expect(await sh(sandbox, "echo mine > ~/hidden; echo mine > ~/plain; cat ~/hidden ~/plain")).toBe("mine\nmine\n");
    const refused = await sh(sandbox, "echo x > output/hidden; echo x > plain; ls output");
    expect(refused.match(/denied/g)).toHaveLength(2);
    await sandbox.updateRules([{ pattern: "**/*", permission: "none" }]);
    expect(await sh(sandbox, "cat ~/hidden; cd; pwd; ls -A /workspace")).toBe("mine\n/home/agent\n");
  });

  reality(
    "is another file system than the workspace to link and rename, and copies go from one to the other",
    async () => {
      const sandbox = await running();
      const tried = `
import errno, os
home, work = os.path.expanduser("~"), "/workspace/output"
for place in home, work:
    for number in range(50):
        with open(f"{place}/f{number}", "w") as file: file.write(place)
def errno_of(act, *paths):
    try: act(*paths)
    except OSError as error: return errno.errorcode[error.errno]
for act in os.link, os.rename:
    print(errno_of(act, home + "/f0", work + "/new"), errno_of(act, work + "/f0", home + "/new"))
source, target = os.open(home + "/f0", os.O_RDONLY), os.open(work + "/copy", os.O_RDWR | os.O_CREAT)
print(os.copy_file_range(source, target, 100), os.pread(target, 100, 0).decode())
places = [f"{place}/f{number}" for place in (home, work) for number in range(50)] + [home, "/workspace"]
print(len({(os.stat(path).st_dev, os.stat(path).st_ino) for path in places}))
for place in home, "/workspace":
    print(os.path.samefile(place + "/..", os.path.dirname(place)), end=" ")`;
      const { stdout, stderr } = await sandbox.exec({ command: ["python3", "-c", tried] });
      expect(`${stdout}${stderr}`).toBe("EXDEV EXDEV\nEXDEV EXDEV\n11 /home/agent\n102\nTrue True ");
    },
  );

  reality("takes no devices, no set-id bits, and no names of its own bookkeeping", async () => {
    const sandbox = await running();
    expect(await sh(sandbox, "mknod ~/null c 1 3")).toMatch(/not permitted|denied/);
    const set = 'cp /bin/sh ~/sh; chmod 6755 ~/sh; stat -c %a ~/sh; grep " /home/agent " /proc/mounts';
    const shown = await sh(sandbox, set);
    expect(shown).toMatch(/^755$/m);
    expect(shown).toMatch(/nosuid/);
    expect(shown).toMatch(/nodev/);
    expect(await sh(sandbox, "echo x > ~/.wh.name")).toMatch(/not permitted/);
    expect(await sh(sandbox, "ls -A ~; ls ~/.wh..wh.work")).toMatch(/^sh\n.*No such file/);
  });

  reality("links in it lead nowhere on the host, and go with it without what they point to", async () => {
    const { delta, workspaces } = await workspace();
    const outside = await mkdtemp(join(directory(), "outside-"));
    await writeFile(join(outside, "precious"), "precious\n");
    let sandbox = await running({ workspaces });
    expect(await sh(sandbox, `ln -s ${outside} ~/out; cat ~/out/precious; echo x > ~/out/made`)).toMatch(
      /No such file[\s\S]*(?:No such file|nonexistent)/,
    );
    sandbox = await again(sandbox);
    expect(await sh(sandbox, "readlink ~/out")).toBe(`${outside}\n`);
    expect((await lstat(join(delta, "home/out"))).isSymbolicLink()).toBe(true);
    expect([await readdir(outside), await readFile(join(outside, "precious"), "utf8")]).toEqual([
      ["precious"],
      "precious\n",
    ]);
  });

  reality("is no part of what the sandbox changed, and stays when that is thrown away", async () => {
    const { delta, workspaces } = await workspace();
    const sandbox = await running({ workspaces });
    await sh(sandbox, "echo work > output/work; echo mine > ~/mine");
    const changes: string[] = [];
    for await (const { path } of listChanges({ delta, lowers: [project()], rules: RULES })) changes.push(path);
    expect(changes).toEqual(["/output/work"]);
    await sandbox.discard(undefined);
    expect(await sh(sandbox, "ls output; cat ~/mine")).toBe("mine\n");
    await sandbox.destroy();
    await sandbox.discard(undefined);
    const next = await again(sandbox);
    expect(await sh(next, "cat ~/mine")).toBe("mine\n");
  });

  reality("a directory of the caller's is the home of one sandbox after another, of one at a time", async () => {
    const home = join(directory(), "kept-home");
    await mkdir(home, { mode: 0o700 });
    await writeFile(join(home, ".profile"), "greeting\n");
    const first = await running({ home });
    expect(await sh(first, "cat ~/.profile; echo login > ~/.token")).toBe("greeting\n");
    const second = await make({ home });
    await expect(second.start()).rejects.toThrow(/in use/);
    await first.destroy();
    expect(await readFile(join(home, ".token"), "utf8")).toBe("login\n");
    const third = await running({ home });
    expect(await sh(third, "cat ~/.token")).toBe("login\n");
  });

  reality("a link in the place of a home is not followed", async () => {
    const target = await mkdtemp(join(directory(), "target-"));
    const home = join(directory(), "linked-home");
    await symlink(target, home);
    const sandbox = await make({ home });
    await expect(sandbox.start()).rejects.toThrow();
    expect(await readdir(target)).toEqual([]);
  });
}
