import { execFileSync } from "node:child_process";
import { appendFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { As } from "../../../test/support/identity.ts";
import { agentfense } from "./run-cli.ts";
import { describeForBoth, type Places, places } from "./sandbox-places.ts";

const TOKEN = "ghp_q7Xk2Lw9Zr4Tn8Vb3Ms6Yd1Hc5Jf0Pg2Ra7Ue";

/** Runs the git of the host in the project, with nothing of who runs these tests. */
function git({ cwd, surroundings: { identity } }: Places, ...args: string[]): string {
  const env = { PATH: process.env["PATH"], HOME: cwd, GIT_CONFIG_NOSYSTEM: "1" };
  const place = join(cwd, "project");
  return execFileSync("git", ["-c", "user.name=o", "-c", "user.email=o@example.com", ...args], {
    ...identity,
    cwd: place,
    env,
    encoding: "utf8",
  });
}

/** The example project as a repository with one commit, a token in its settings and a hook. */
async function repository(as: As): Promise<Places> {
  const here = await places(as);
  git(here, "init", "-q", "-b", "main");
  git(here, "add", "README.md", "src");
  git(here, "commit", "-q", "-m", "first");
  await appendFile(
    join(here.cwd, "project/.git/config"),
    `[remote "origin"]\n\turl = https://owner:${TOKEN}@example.com/project.git\n[http]\n\textraheader = Authorization: Basic ${TOKEN}\n`,
  );
  await mkdir(join(here.cwd, "project/.git/hooks"), { recursive: true });
  await writeFile(join(here.cwd, "project/.git/hooks/pre-push"), "#!/bin/sh\n", { mode: 0o755 });
  return here;
}

async function inBox({ surroundings }: Places, script: string, ...options: string[]) {
  return await agentfense(["run", "--preset", "development", ...options, "project", "--", script], surroundings);
}

describeForBoth("git under the preset development", (as) => {
  test("status, diff, log, add, commit, branches and rebase work, and the host's git has the commits after an apply", async () => {
    const here = await repository(as);
    const script = [
      "set -e",
      "git status --short | grep -v '^??' && exit 9",
      "echo more >> README.md && git diff --stat | tail -n 1",
      "git add README.md && git commit -q -m 'from the box'",
      "git checkout -q -b credentials-fix HEAD~1 && echo new > new.txt && git add new.txt && git commit -q -m branch new.txt",
      "git rebase -q main && git checkout -q main && git merge -q --ff-only credentials-fix",
      "echo x >> README.md && git stash -q && git stash drop -q && git gc -q",
      "git log --format='%s by %an <%ae>'",
    ].join("\n");
    expect(await inBox(here, script, "--apply")).toMatchObject({
      code: 0,
      stdout:
        " 1 file changed, 1 insertion(+)\nbranch by agent <agent@sandbox>\nfrom the box by agent <agent@sandbox>\nfirst by o <o@example.com>\n",
    });
    expect(git(here, "log", "--format=%s", "main", "credentials-fix")).toBe("branch\nfrom the box\nfirst\n");
    expect(git(here, "fsck", "--strict", "--no-dangling")).toBe("");
    expect(git(here, "config", "remote.origin.url")).toContain(TOKEN);
  });

  test("credentials in its settings do not exist for the box, in whatever way it looks for them", async () => {
    const here = await repository(as);
    const { stdout, stderr } = await inBox(
      here,
      `cat .git/config; git config --list; git remote -v; git fetch origin; ls .git; grep -r ${TOKEN.slice(0, 12)} . ; tar c .git 2>/dev/null | grep -c ghp_; ln .git/config copy; mv .git/config copy; cat copy; mv .git gone; cat gone/config`,
    );
    expect(stdout + stderr.replaceAll("agentfense", "")).not.toContain(TOKEN.slice(0, 8));
    expect(stdout).not.toMatch(/^config/m);
    expect(stdout).toContain("HEAD");
  });

  test("nothing can be put where the host's git would run it or take it for settings", async () => {
    const here = await repository(as);
    const places = [
      ".git/hooks/pre-commit",
      ".git/hooks/pre-push",
      ".git/config",
      ".git/config.worktree",
      ".git/config.lock",
      ".git/commondir",
      ".git/info/attributes",
      ".git/modules/refs/config",
      ".git/remotes/origin",
      "src/.git",
      "src/.git/config",
    ];
    const tries = places.map((place) => `mkdir -p $(dirname ${place}); echo x > ${place} && echo WROTE ${place}`);
    const { stdout } = await inBox(
      here,
      `${tries.join("\n")}\ngit config a.b c && echo SET; rm -rf .git/hooks; ls .git/hooks/pre-push; git init -q src; mv .git/refs .git/hooks/; ln -sf /tmp .git/hooks; git status --short | head -n 0`,
      "--apply=always",
    );
    expect(stdout).toBe(".git/hooks/pre-push\n");
    expect(git(here, "config", "--list", "--local")).toContain("extraheader");
    expect(git(here, "log", "--format=%s")).toBe("first\n");
  });
});
