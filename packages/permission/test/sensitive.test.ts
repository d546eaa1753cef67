import { isSensitive } from "@agentfense/permission";
import { describe, expect, test } from "vitest";

const ACTS_BY_ITSELF = [
  ...[
    "/.git",
    "/.git/config",
    "/.git/hooks/pre-commit",
    "/.git/info/attributes",
    "/.git/commondir",
    "/lib/.git/config",
  ],
  ...["/.git/rebase-merge/git-rebase-todo", "/.git/objects/info/alternates", "/fixtures/repository/HEAD"],
  ...["/.gitattributes", "/.gitmodules", "/.gitconfig", "/.pre-commit-config.yaml", "/.husky/pre-push"],
  ...[
    "/.envrc",
    "/.env",
    "/.vscode/tasks.json",
    "/.idea/runConfigurations/Run.xml",
    "/.devcontainer/devcontainer.json",
  ],
  ...["/.github/workflows/ci.yml", "/.gitlab-ci.yml", "/Jenkinsfile", "/.circleci/config.yml"],
  ...[
    "/package.json",
    "/app/package.json",
    "/package-lock.json",
    "/yarn.lock",
    "/bun.lock",
    "/.npmrc",
    "/vite.config.ts",
  ],
  ...["/Cargo.lock", "/build.rs", "/go.sum", "/Makefile", "/CMakeLists.txt", "/Dockerfile", "/compose.yaml"],
  ...[
    "/conftest.py",
    "/tests/conftest.py",
    "/setup.py",
    "/pyproject.toml",
    "/requirements-dev.txt",
    "/uv.lock",
    "/x.pth",
  ],
  ...[
    "/.curlrc",
    "/pip.conf",
    "/.ssh/config",
    "/CLAUDE.md",
    "/.mcp.json",
    "/.claude/settings.json",
    "/.agentfense.yaml",
  ],
];

const HARMLESS = [
  ...["/", "/src/main.ts", "/README.md", "/docs/config.md", "/build/out.js", "/.gitignore", "/tests/test_app.py"],
  ...[
    "/.git/index",
    "/.git/HEAD",
    "/.git/ORIG_HEAD",
    "/.git/COMMIT_EDITMSG",
    "/.git/refs/heads/main",
    "/.git/packed-refs",
  ],
  ...["/.git/objects/ab/cdef", "/.git/objects/pack/pack-1.pack", "/.git/logs/HEAD", "/lib/.git/refs/tags/v1"],
];

describe("isSensitive", () => {
  test.each(ACTS_BY_ITSELF)("%s is something that a host runs or trusts unasked", (path) => {
    expect(isSensitive(path, undefined)).toBe(true);
  });

  test.each(HARMLESS)("%s is not", (path) => {
    expect(isSensitive(path, undefined)).toBe(false);
  });

  test("a link counts by where it leads", () => {
    const links = { "/a": "/etc/passwd", "/b/c": "../../x", "/b/d": "../x", "/e": "./f/../g" };
    const marked = Object.entries(links).filter(([path, target]) => isSensitive(path, target));
    expect(marked.map(([path]) => path)).toEqual(["/a", "/b/c"]);
  });
});

test("NET-10 settings by which the host's programs would trust or use what the box does are marked", () => {
  const settings = [
    "/.gitconfig",
    "/.npmrc",
    "/app/.npmrc",
    "/pip.conf",
    "/.curlrc",
    "/.ssh/config",
    "/.cargo/config.toml",
  ];
  expect(settings.filter((path) => !isSensitive(path, undefined))).toEqual([]);
});
