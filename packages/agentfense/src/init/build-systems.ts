import { namesIn } from "@agentfense/permission";
/** How projects are built: what tells, where the results go, and what else a file of theirs names as such a place. */
export interface BuildSystem {
  readonly name: string;
  /** Any of these files in a directory makes it such a project. */
  readonly markers: readonly string[];
  /** Directories beside the marker that hold results, if they exist. */
  readonly outputs: readonly string[];
  /** Files beside the marker that name further ones, and how. */
  readonly naming: readonly { readonly file: string; readonly pattern: RegExp }[];
}

const IN_PACKAGE_JSON = /"(?:main|module|types|browser)"\s*:\s*"(?:\.\/)?((?:dist|build|out|output)\b[^"/]*)\//g;
const IN_TSCONFIG = /"(?:outDir|declarationDir)"\s*:\s*"([^"]+)"/g;
const IN_MAKEFILE = /^(?:export\s+)?\w*(?:BUILD|OUT|OUTPUT|DIST|OBJ)_?(?:DIR|PATH)?\s*[:?]?=[ \t]*([^\s#$]+)[ \t]*$/gm;

export const BUILD_SYSTEMS: readonly BuildSystem[] = [
  {
    name: "JavaScript",
    markers: ["package.json", "deno.json", "deno.jsonc"],
    outputs: [
      "dist",
      "build",
      "out",
      "coverage",
      ".next",
      ".nuxt",
      ".svelte-kit",
      ".turbo",
      ".parcel-cache",
      "storybook-static",
    ],
    naming: [
      { file: "package.json", pattern: IN_PACKAGE_JSON },
      { file: "tsconfig.json", pattern: IN_TSCONFIG },
      { file: "tsconfig.build.json", pattern: IN_TSCONFIG },
    ],
  },
  {
    name: "Python",
    markers: ["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", "tox.ini"],
    outputs: ["build", "dist", "htmlcov", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".nox"],
    naming: [{ file: "pyproject.toml", pattern: /^(?:data_file|cache_dir|directory)\s*=\s*"([\w.-]+)"/gm }],
  },
  {
    name: "Rust",
    markers: ["Cargo.toml"],
    outputs: ["target"],
    naming: [{ file: ".cargo/config.toml", pattern: /^target-dir\s*=\s*"([^"]+)"/gm }],
  },
  { name: "Go", markers: ["go.mod"], outputs: ["bin", "dist"], naming: [] },
  {
    name: "Make",
    markers: ["Makefile", "makefile", "GNUmakefile"],
    outputs: ["build", "out", "obj"],
    naming: ["Makefile", "makefile", "GNUmakefile"].map((file) => ({ file, pattern: IN_MAKEFILE })),
  },
  {
    name: "CMake",
    markers: ["CMakeLists.txt"],
    outputs: ["build", "cmake-build-debug", "cmake-build-release"],
    naming: [],
  },
  { name: "Meson", markers: ["meson.build"], outputs: ["build", "builddir"], naming: [] },
  { name: "Maven", markers: ["pom.xml"], outputs: ["target"], naming: [] },
  {
    name: "Gradle",
    markers: ["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"],
    outputs: ["build", ".gradle"],
    naming: [],
  },
  { name: "Ruby", markers: ["Gemfile"], outputs: ["coverage", "pkg"], naming: [] },
  { name: "PHP", markers: ["composer.json"], outputs: ["build", ".phpunit.cache"], naming: [] },
  { name: "Elixir", markers: ["mix.exs"], outputs: ["_build", "cover"], naming: [] },
  { name: "Swift", markers: ["Package.swift"], outputs: [".build"], naming: [] },
];

/** Where sources usually are: never taken for a place of results, whatever a file says. */
const SOURCES: ReadonlySet<string> = new Set([
  ".",
  "src",
  "source",
  "sources",
  "lib",
  "test",
  "tests",
  "app",
  "docs",
  ".git",
]);

/** A directory beside its marker that a file names: relative, below, plain characters, and not one of sources. */
export function plainOutput(named: string): string | undefined {
  const names = namesIn(named);
  if (named.startsWith("/") || names.length === 0 || names.length > 3) return undefined;
  if (names.some((name) => !/^[\w.@+-]+$/.test(name) || name === "..")) return undefined;
  return SOURCES.has(names[0]!) ? undefined : names.join("/");
}
