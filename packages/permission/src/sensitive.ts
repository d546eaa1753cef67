import { compileRules, type Policy } from "./policy.ts";
import { LEVEL } from "./rule.ts";

// Names that make the host run something, or trust something, without anybody asking for it: a commit, an install, opening
// the directory in an editor, a push, a program that takes its settings from where it is called. A reviewer has to see
// those among a thousand harmless ones.

const PATTERNS = [
  // version control: hooks, filters, submodules; a HEAD makes a directory a repository whose settings count
  "**/.git/**",
  "**/HEAD",
  "**/.{gitattributes,gitmodules,gitconfig,hgrc}",
  "**/{.githooks,.husky,.hg}/**",
  "**/{lefthook,.lefthook,.pre-commit-config,.pre-commit-hooks}.{yml,yaml}",
  // JavaScript: scripts, registries, configuration that is code
  "**/{package.json,package-lock.json,npm-shrinkwrap.json,yarn.lock,pnpm-lock.yaml,pnpm-workspace.yaml,.pnpmfile.cjs}",
  "**/{bun.lock,bun.lockb,deno.lock,turbo.json,nx.json,lerna.json,.lintstagedrc,.lintstagedrc.json}",
  "**/{.npmrc,.yarnrc,.yarnrc.yml,bunfig.toml,deno.json,deno.jsonc}",
  "**/*.config.{js,cjs,mjs,ts,cts,mts}",
  "**/.*rc.{js,cjs,mjs,ts}",
  "**/node_modules/.bin/**",
  // Python
  "**/{setup.py,setup.cfg,pyproject.toml,conftest.py,tox.ini,noxfile.py,sitecustomize.py,usercustomize.py,.pypirc,pip.conf}",
  "**/*.pth",
  "**/requirements*.txt",
  "**/{Pipfile,Pipfile.lock,poetry.lock,pdm.lock,uv.lock,uv.toml,.condarc,environment.yml}",
  // builds
  "**/{Makefile,makefile,GNUmakefile,Justfile,justfile,.justfile,Rakefile,Gemfile,Gemfile.lock,configure,CMakeLists.txt}",
  "**/*.{mk,cmake,gemspec,gradle,gradle.kts,csproj,fsproj,vbproj,props,targets,bzl}",
  "**/Taskfile.{yml,yaml}",
  "**/{build.rs,Cargo.toml,build.zig,Package.swift,mix.exs,meson.build,pom.xml,composer.json,go.mod,go.work}",
  "**/{Cargo.lock,go.sum,go.work.sum,composer.lock,mix.lock,Package.resolved,gradle.lockfile,packages.lock.json,flake.lock}",
  "**/{.cargo,.mvn,gradle/wrapper}/**",
  "**/{gradlew,gradlew.bat,mvnw,mvnw.cmd,gradle.properties}",
  "**/{BUILD,BUILD.bazel,WORKSPACE,MODULE.bazel,.bazelrc}",
  "**/{Dockerfile,Containerfile,Vagrantfile,flake.nix,shell.nix,default.nix}",
  "**/{Dockerfile.*,*.Dockerfile}",
  "**/{docker-compose,compose}*.{yml,yaml}",
  "**/{Procfile,Tiltfile,skaffold.yaml,.gitpod.yml,.replit,.terraformrc}",
  // shells, environments, and what makes programs trust another server or certificate
  "**/.{env,envrc,tool-versions,profile,bashrc,bash_profile,zshrc,zshenv,zprofile,inputrc,gdbinit,lldbinit}",
  "**/.env.*",
  "**/{.curlrc,.wgetrc,.netrc,.gemrc,.bundle/config,.ssh/**}",
  "**/{.mise,mise}.toml",
  // editors, and assistants that take orders from files
  "**/{.vscode,.idea,.zed,.fleet,.cursor,.claude,.gemini,.codex,.devcontainer}/**",
  "**/.devcontainer.json",
  "**/*.{code-workspace,sublime-project,iml}",
  "**/{.vimrc,.exrc,.nvimrc,.nvim.lua,.dir-locals.el,.editorconfig,.mcp.json,.cursorrules}",
  "**/{AGENTS.md,CLAUDE.md,GEMINI.md}",
  // our own: what the next sandbox may see and do
  "**/{.agentfense,agentfense}.{yml,yaml}",
  "**/.agentfenseignore",
  // continuous integration
  "**/{.github,.gitlab,.circleci,.buildkite,.forgejo,.gitea,.woodpecker}/**",
  "**/{.gitlab-ci,.travis,azure-pipelines,bitbucket-pipelines,.drone,.woodpecker,appveyor,.appveyor,cloudbuild}.{yml,yaml}",
  "**/Jenkinsfile",
];

// What a commit changes in a repository runs nothing: else every commit would be marked, and nobody would look any more.
const HARMLESS = [
  "**/.git/{objects,refs,logs,reftable}/**",
  "**/.git/{*HEAD,*MSG,MERGE_*,AUTO_MERGE,index,packed-refs,shallow,info/refs}",
];

/** Compiled for the first change that is looked at: most processes never see one. */
let policy: Policy | undefined;

/**
 * The host may act on what stands at this path (`/package.json`) without being asked to, or it is a link (to `target`) that
 * leads out of the workspace.
 */
export function isSensitive(path: string, target: string | undefined): boolean {
  policy ??= compileRules([
    ...PATTERNS.map((pattern) => ({ pattern, permission: "read", type: "glob" }) as const),
    ...HARMLESS.map((pattern) => ({ pattern, permission: "none", type: "glob", priority: 1 }) as const),
    { pattern: "**/.git/objects/info/*alternates", permission: "read", priority: 2 },
  ]);
  return policy.decide(path).level > LEVEL.none || (target !== undefined && leadsOut(path, target));
}

function leadsOut(path: string, target: string): boolean {
  if (target.startsWith("/")) return true;
  let depth = path.split("/").length - 2;
  for (const name of target.split("/")) {
    if (name === "..") depth -= 1;
    else if (name !== "" && name !== ".") depth += 1;
    if (depth < 0) return true;
  }
  return false;
}
