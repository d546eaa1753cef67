import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  API,
  type Checker,
  type Symbol as Declared,
  type Signature,
  SignatureKind,
  SymbolFlags,
  type Type,
} from "typescript/unstable/sync";

const repository = join(import.meta.dirname, "../..");

/**
 * What a module exports, as lines in the spelling of Python; public_names.py gives the same of the Python package.
 *
 * | line                              | is                                                               |
 * | --------------------------------- | ---------------------------------------------------------------- |
 * | Sandbox                           | something exported                                               |
 * | Sandbox.from_local                | a member of a class, a field of a record                         |
 * | Sandbox.run(timeout)              | a parameter, or an option: in Python those are keyword arguments |
 * | SyncMode: on-exec                 | one of the words that a type is made of                          |
 * | FileNotFoundError < CodebaseError | what an error extends                                            |
 */
export function typescriptNames(module: string): string[] {
  const directory = mkdtempSync(join(tmpdir(), "agentfense-names-"));
  const api = new API({ cwd: repository });
  try {
    const configuration = join(directory, "tsconfig.json");
    writeFileSync(configuration, JSON.stringify(configurationFor(module)));
    using snapshot = api.updateSnapshot({ openProjects: [configuration] });
    const { checker, program } = snapshot.getProject(configuration)!;
    return new Reader(checker).exports(checker.getSymbolAtLocation(program.getSourceFile(module)!)!);
  } finally {
    api.close();
    rmSync(directory, { recursive: true });
  }
}

function configurationFor(module: string): object {
  return {
    extends: join(repository, "tsconfig.json"),
    compilerOptions: { typeRoots: [join(repository, "node_modules/@types")] },
    include: [module],
  };
}

/** Objects that hold the options of a call: a line for each option is with the call. */
const BAG = /(Options|Request)$/;
/** Is no such object, but the value of an option. */
const NO_BAG = "TlsOptions";
/** The only class that callers make with its constructor. */
const CONSTRUCTED = "SandboxClient";
/** What every error has in every language, each by its own name. */
const ERROR_MEMBERS = new Set(["name", "message", "stack", "cause", "toString", "__constructor"]);

class Reader {
  readonly #checker: Checker;

  constructor(checker: Checker) {
    this.#checker = checker;
  }

  exports(module: Declared): string[] {
    return this.#checker.getExportsOfModule(module).flatMap((exported) => {
      const isAlias = (exported.flags & SymbolFlags.Alias) !== 0;
      return this.#export(exported.name, isAlias ? this.#checker.getAliasedSymbol(exported) : exported);
    });
  }

  #export(name: string, symbol: Declared): string[] {
    if (symbol.flags & SymbolFlags.Function) return this.#callable(snakeCase(name), symbol);
    if (BAG.test(name) && name !== NO_BAG) return [];
    if (!(symbol.flags & SymbolFlags.Class)) return [name, ...this.#record(name, symbol)];
    return [name, ...(name.endsWith("Error") ? this.#error(name, symbol) : this.#class(name, symbol))];
  }

  #class(name: string, symbol: Declared): string[] {
    const itself = this.#checker.getTypeOfSymbol(symbol)!;
    const constructors = this.#checker.getSignaturesOfType(itself, SignatureKind.Construct);
    const parameters = name === CONSTRUCTED ? constructors.flatMap((each) => this.#parameters(each)) : [];
    const members = [itself, this.#checker.getDeclaredTypeOfSymbol(symbol)].flatMap((type) => this.#properties(type));
    return [
      ...parameters.map((parameter) => `${name}(${parameter})`),
      ...members.flatMap((member) => this.#callable(`${name}.${memberName(member)}`, member)),
    ];
  }

  /** What it has itself, and not from the error it extends. */
  #error(name: string, symbol: Declared): string[] {
    const [base] = this.#checker.getDeclaredTypeOfSymbol(symbol).getBaseTypes() ?? [];
    const own = [...symbol.getMembers().values()].filter(({ name: member }) => !ERROR_MEMBERS.has(member));
    return [`${name} < ${base?.getSymbol()?.name}`, ...own.map((member) => `${name}.${memberName(member)}`)];
  }

  /** Of a union: the words, and the properties of all its parts. */
  #record(name: string, symbol: Declared): string[] {
    const parts = partsOf(this.#checker.getDeclaredTypeOfSymbol(symbol));
    const words = parts.flatMap((part) => (part.isStringLiteralType() ? [`${name}: ${part.value}`] : []));
    return [...words, ...this.#fields(parts).map((field) => `${name}.${field}`)];
  }

  #callable(name: string, symbol: Declared): string[] {
    const type = this.#checker.getTypeOfSymbol(symbol)!;
    const signatures = this.#checker.getSignaturesOfType(type, SignatureKind.Call);
    const parameters = signatures.flatMap((signature) => this.#parameters(signature));
    return [name, ...parameters.map((parameter) => `${name}(${parameter})`)];
  }

  #parameters(signature: Signature): string[] {
    return signature.getParameters().flatMap((parameter) => {
      const isBag = parameter.name === "options" || parameter.name === "request";
      return isBag ? this.#fields(partsOf(this.#checker.getTypeOfSymbol(parameter)!)) : [memberName(parameter)];
    });
  }

  #fields(parts: readonly Type[]): string[] {
    const records = parts.filter((part) => part.isObjectType() || part.isIntersectionType());
    return records.flatMap((part) => this.#properties(part).map(memberName));
  }

  #properties(type: Type): Declared[] {
    return this.#checker.getPropertiesOfType(type).filter(({ name }) => isPublic(name) && name !== "prototype");
  }
}

function partsOf(type: Type): readonly Type[] {
  return type.isUnionType() ? type.getTypes() : [type];
}

/** "#parts" is the business of its class; of what a symbol names, two things have a counterpart. */
function isPublic(name: string): boolean {
  return !name.includes("#");
}

const WELL_KNOWN: Readonly<Record<string, string>> = {
  asyncDispose: "[context manager]",
  asyncIterator: "[iteration]",
};

/** `timeoutMs` is `timeout`: in Python, times are not bare numbers. */
function memberName({ name }: Declared): string {
  const [, wellKnown] = name.match(/^__@(\w+)@/) ?? [];
  return wellKnown === undefined ? snakeCase(name.replace(/Ms$/, "")) : (WELL_KNOWN[wellKnown] ?? name);
}

function snakeCase(name: string): string {
  return name.replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, "_").toLowerCase();
}
