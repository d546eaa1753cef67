import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { repository, type SourcePackage } from "./packages.ts";

interface Language {
  readonly target: string;
  readonly lib: readonly string[];
}

/**
 * What the oldest Node that a package promises (`engines.node`) understands. `using` is compiled away for both: Node 20
 * does not have it, and Node 24.0 forgets to dispose of a variable that a closure captures. What came to the library
 * later than a Node is a type error here.
 */
const LANGUAGES: Readonly<Record<string, Language>> = {
  20: { target: "es2022", lib: ["es2023", "esnext.disposable"] },
  24: { target: "es2024", lib: ["esnext"] },
};

/** A package, and where its compiled source is. */
export interface CompiledPackage extends SourcePackage {
  readonly compiled: string;
}

/** Compiles all packages to JavaScript and declarations below a directory; throws the compiler's complaints. */
export async function compile(packages: readonly SourcePackage[], directory: string): Promise<CompiledPackage[]> {
  const groups = await Promise.all(
    [...Map.groupBy(packages, languageOf)].map(async ([language, group]) => {
      // One program holds the packages that a group imports, too; each package is taken from its own group's.
      const output = join(directory, language.target);
      await runCompiler(group, { ...language, output });
      return group.map((one) => ({ ...one, compiled: join(output, one.folder, "src") }));
    }),
  );
  return groups.flat();
}

function languageOf({ manifest }: SourcePackage): Language {
  const [, oldest = ""] = /^>=(\d+)/.exec(manifest.engines.node) ?? [];
  const language = LANGUAGES[oldest];
  if (language === undefined) throw new Error(`${manifest.name}: no language for "node": "${manifest.engines.node}"`);
  return language;
}

async function runCompiler(
  packages: readonly SourcePackage[],
  { output, target, lib }: Language & { readonly output: string },
): Promise<void> {
  mkdirSync(output, { recursive: true });
  const project = join(output, "tsconfig.json");
  const settings = {
    extends: join(repository, "tsconfig.json"),
    compilerOptions: {
      target,
      lib,
      typeRoots: [join(repository, "node_modules/@types")],
      noEmit: false,
      noEmitOnError: true,
      declaration: true,
      allowImportingTsExtensions: false,
      rewriteRelativeImportExtensions: true,
      rootDir: join(repository, "packages"),
      outDir: output,
    },
    include: packages.map(({ directory }) => join(directory, "src")),
  };
  writeFileSync(project, JSON.stringify(settings, undefined, 2));
  const compiler = join(repository, "node_modules/.bin/tsc");
  await promisify(execFile)(compiler, ["-p", project], { cwd: repository }).catch(
    (error: Error & { stdout: string; stderr: string }) => {
      throw new Error(`tsc (${target}) failed:\n${error.stdout}${error.stderr}`);
    },
  );
}
