/** What is wrong with a value, in the words of FastAPI, whose clients read them. */
export interface Problem {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
}

type Place = readonly (string | number)[];
type Read<T> = (value: unknown, at: Place, problems: Problem[]) => T;

/** What a value of a request has to be. Reading collects every problem; what it gives counts only where there is none. */
export class Shape<T> {
  readonly read: Read<T>;

  constructor(read: Read<T>) {
    this.read = read;
  }

  optional(): Shape<T | undefined> {
    return new Shape((value, at, problems) => (value === undefined ? undefined : this.read(value, at, problems)));
  }

  default(absent: T): Shape<T> {
    return new Shape((value, at, problems) => (value === undefined ? absent : this.read(value, at, problems)));
  }

  /** Bounds the value of a number, and the length of anything else. */
  min(least: number): Shape<T> {
    return this.#where((value) => sizeOf(value) >= least, `should be at least ${least}`, "greater_than_equal");
  }

  max(most: number): Shape<T> {
    return this.#where((value) => sizeOf(value) <= most, `should be at most ${most}`, "less_than_equal");
  }

  above(bound: number): Shape<T> {
    return this.#where((value) => sizeOf(value) > bound, `should be above ${bound}`, "greater_than");
  }

  #where(holds: (value: T) => boolean, msg: string, type: string): Shape<T> {
    return new Shape((value, at, problems) => {
      const before = problems.length;
      const read = this.read(value, at, problems);
      if (problems.length === before && !holds(read)) problems.push({ loc: at, msg: `Input ${msg}`, type });
      return read;
    });
  }
}

export type Value<S> = S extends Shape<infer T> ? T : never;

function sizeOf(value: unknown): number {
  return typeof value === "number" ? value : (value as { readonly length: number }).length;
}

function primitive<T>(what: string, type: string, isMeant: (value: unknown) => boolean): Shape<T> {
  return new Shape((value, at, problems) => {
    if (value === undefined) problems.push({ loc: at, msg: "Field required", type: "missing" });
    else if (!isMeant(value)) problems.push({ loc: at, msg: `Input should be ${what}`, type });
    return value as T;
  });
}

export function string(): Shape<string> {
  return primitive("a valid string", "string_type", (value) => typeof value === "string");
}

export function boolean(): Shape<boolean> {
  return primitive("a valid boolean", "bool_type", (value) => typeof value === "boolean");
}

export function number(): Shape<number> {
  return primitive("a valid number", "float_type", Number.isFinite);
}

export function int(): Shape<number> {
  return primitive("a valid integer", "int_type", Number.isSafeInteger);
}

/** A number in a query, where all is text. */
export function digits(): Shape<number> {
  const number = int();
  return new Shape((value, at, problems) =>
    number.read(typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value, at, problems),
  );
}

export function oneOf<const T extends string>(words: readonly T[]): Shape<T> {
  return primitive(words.map((word) => `'${word}'`).join(" or "), "literal_error", (value) =>
    words.some((word) => word === value),
  );
}

export function list<T>(item: Shape<T>): Shape<readonly T[]> {
  const all = primitive<readonly unknown[]>("a valid list", "list_type", Array.isArray);
  return new Shape((value, at, problems) => {
    const items = all.read(value, at, problems);
    return Array.isArray(items) ? items.map((each, index) => item.read(each, [...at, index], problems)) : [];
  });
}

/** One item, or several. */
export function listOrOne<T>(item: Shape<T>): Shape<readonly T[]> {
  const several = list(item);
  return new Shape((value, at, problems) =>
    Array.isArray(value) ? several.read(value, at, problems) : [item.read(value, at, problems)],
  );
}

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null && !Array.isArray(value);

/** Any names, all with values of one shape. */
export function record<T>(item: Shape<T>): Shape<Readonly<Record<string, T>>> {
  const all = primitive<Record<string, unknown>>("a valid dictionary", "dict_type", isObject);
  return new Shape((value, at, problems) => {
    const given = all.read(value, at, problems);
    if (!isObject(given)) return {};
    const entries = Object.entries(given).map(([name, each]) => [name, item.read(each, [...at, name], problems)]);
    return Object.fromEntries(entries) as Record<string, T>;
  });
}

type Members = Readonly<Record<string, Shape<unknown>>>;

/** What it does not name is left out. */
export function object<const M extends Members>(members: M): Shape<{ readonly [Name in keyof M]: Value<M[Name]> }> {
  const all = primitive<Record<string, unknown>>("a valid dictionary", "dict_type", isObject);
  return new Shape((value, at, problems) => {
    const given = all.read(value, at, problems);
    const entries = isObject(given)
      ? Object.entries(members).map(([name, shape]) => {
          const own = Object.hasOwn(given, name) ? given[name] : undefined;
          return [name, shape.read(own, [...at, name], problems)];
        })
      : [];
    return Object.fromEntries(entries) as { readonly [Name in keyof M]: Value<M[Name]> };
  });
}

/** What a value was read as; otherwise what is wrong with it is thrown. */
export function parsed<T>(shape: Shape<T>, value: unknown, refusalOf: (problem: string) => Error): T {
  const problems: Problem[] = [];
  const read = shape.read(value, [], problems);
  const [first] = problems;
  if (first === undefined) return read;
  throw refusalOf(`${first.loc.length === 0 ? "the message" : first.loc.join(".")}: ${first.msg}`);
}
