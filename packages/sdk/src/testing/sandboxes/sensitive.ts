import { compileRules, LEVEL } from "@agentfense/permission";

// The best-known names that make a host run or trust something without being asked to. The server knows more of them.
const PATTERNS = [
  "**/{.git,.githooks,.husky,.github,.gitlab,.circleci,.vscode,.idea,.cursor,.claude,.devcontainer}/**",
  "**/{.gitattributes,.gitmodules,.npmrc,.yarnrc,.yarnrc.yml,.envrc,.env,.env.*}",
  "**/{package.json,package-lock.json,yarn.lock,pnpm-lock.yaml,deno.json}",
  "**/*.config.{js,cjs,mjs,ts,cts,mts}",
  "**/{setup.py,setup.cfg,pyproject.toml,conftest.py,requirements*.txt}",
  "**/{Makefile,makefile,Justfile,Rakefile,Gemfile,CMakeLists.txt,build.rs,Cargo.toml,Dockerfile,Jenkinsfile}",
  "**/{.gitlab-ci,docker-compose,compose}*.{yml,yaml}",
  "**/{AGENTS.md,CLAUDE.md,GEMINI.md,.mcp.json,.cursorrules}",
];

const policy = compileRules(PATTERNS.map((pattern) => ({ pattern, permission: "read", type: "glob" })));

/** The host may act on what stands at this path, or it is a link (to `target`) that leads out of the workspace. */
export function isSensitive(path: string, target: string | undefined): boolean {
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
