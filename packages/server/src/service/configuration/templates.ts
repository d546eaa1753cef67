import { type Rule, rulesOfData } from "../../runtime/sandboxes/request.ts";
import type { NetworkName, RuntimeName } from "../../runtime/store/store.ts";
import { choice, hosts, type Setting, text, texts } from "./values.ts";
import { shown, suggestion } from "./wording.ts";

/** What a sandbox is that is asked for by a name. What it does not say is the server's default. */
export interface TemplateSettings {
  readonly codebase?: string;
  readonly preset?: string;
  readonly permissions?: readonly Rule[];
  readonly network?: NetworkName | { readonly allow?: readonly string[]; readonly presets?: readonly string[] };
  readonly runtime?: RuntimeName;
  readonly image?: string;
  /** As in the section sandbox.resources. */
  readonly resources?: Readonly<Record<string, number>>;
}

/** Why a value is none, with the place in it: "my-repo.preset: expected a text, not 3". */
class Mistake extends Error {}

type Read = (given: unknown, at: string) => unknown;

const LONGEST_NAME = 256;
const EXPECTS = "sections by the names of templates, such as my-repo: { codebase: cb_1, preset: agent-safe }";

export interface TemplateParts {
  readonly runtimes: readonly RuntimeName[];
  readonly networks: readonly NetworkName[];
  readonly resources: Readonly<Record<string, Setting>>;
}

/** Sandboxes by name. Strict, as everything in the file: what is not understood is refused with its place. */
export function templates(parts: TemplateParts, description: string): Setting<Record<string, TemplateSettings>> {
  const network = choice(parts.networks, undefined, "");
  const list = section({ allow: single(hosts([], "")), presets: single(texts([], "")) });
  const members = section({
    codebase: single(text("", "")),
    preset: preset,
    permissions: rules,
    network: (given, at) => (typeof given === "object" ? list(given, at) : single(network)(given, at)),
    runtime: single(choice(parts.runtimes, undefined, "")),
    image: single(text("", "")),
    resources: section(Object.fromEntries(Object.entries(parts.resources).map(([name, each]) => [name, single(each)]))),
  });
  const readAll = (given: unknown): Record<string, TemplateSettings> => {
    if (!isRecord(given)) throw new Mistake(`expected ${EXPECTS}, not ${shown(given)}`);
    const entries = Object.entries(given).map(([name, each]) => {
      if (name === "" || name.length > LONGEST_NAME) throw new Mistake(`a name has 1 to ${LONGEST_NAME} characters`);
      // "my-repo:" with nothing behind it is a template that says nothing.
      return [name, members(each ?? {}, name)] as const;
    });
    return Object.fromEntries(entries) as Record<string, TemplateSettings>;
  };
  return {
    description,
    expects: EXPECTS,
    fallback: {},
    read: (given) => (mistakeIn(readAll, given) === undefined ? readAll(given) : undefined),
    problem: (given) => mistakeIn(readAll, given),
    fromText: (given) => {
      try {
        return JSON.parse(given) as unknown;
      } catch {
        return given;
      }
    },
    write: (value) => value,
  };
}

function mistakeIn(read: (given: unknown) => unknown, given: unknown): string | undefined {
  try {
    read(given);
    return undefined;
  } catch (error) {
    if (error instanceof Mistake) return error.message;
    throw error;
  }
}

function section(members: Readonly<Record<string, Read>>): Read {
  return (given, at) => {
    if (!isRecord(given)) throw new Mistake(`${at}: expected a section with keys, not ${shown(given)}`);
    const entries = Object.entries(given).map(([name, each]) => {
      const read = Object.hasOwn(members, name) ? members[name] : undefined;
      if (read === undefined) {
        throw new Mistake(`unknown key ${at}.${name}${suggestion(name, Object.keys(members))}`);
      }
      return [name, read(each, `${at}.${name}`)] as const;
    });
    return Object.fromEntries(entries);
  };
}

function single({ read, expects }: Setting): Read {
  return (given, at) => {
    const value = read(given);
    if (value === undefined) throw new Mistake(`${at}: expected ${expects}, not ${shown(given)}`);
    return value;
  };
}

const preset: Read = (given, at) => {
  const name = single(text("", ""))(given, at) as string;
  checked(at, () => rulesOfData([], name));
  return name;
};

const rules: Read = (given, at) => checked(at, () => rulesOfData(given, ""));

function checked<T>(at: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new Mistake(`${at}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function isRecord(given: unknown): given is Record<string, unknown> {
  return typeof given === "object" && given !== null && !Array.isArray(given);
}
