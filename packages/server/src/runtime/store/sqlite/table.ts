import type { SQLInputValue } from "node:sqlite";
import type { Database, Row } from "./database.ts";

/** A column whose value is another in the record: what the database has of it, and back. */
interface Column {
  readonly name: string;
  write(value: unknown): SQLInputValue;
  read(value: unknown): unknown;
}

type Columns<R> = { readonly [Member in keyof R]-?: string | Column };

export function json(name: string): Column {
  return { name, write: (value) => JSON.stringify(value), read: (value) => JSON.parse(value as string) };
}

export function flag(name: string): Column {
  return { name, write: (value) => (value ? 1 : 0), read: (value) => value === 1 };
}

/** May be absent from the record, and is NULL then. */
export function optional(name: string): Column {
  return { name, write: (value) => (value ?? null) as SQLInputValue, read: (value) => value ?? undefined };
}

/** A table whose rows are records: which column has which member of them. */
export class Table<R extends object> {
  readonly #name: string;
  readonly #columns: readonly (readonly [member: string, column: string | Column])[];
  readonly #translated: readonly (readonly [member: string, column: Column])[];
  readonly #select: string;

  constructor(name: string, columns: Columns<R>) {
    this.#name = name;
    this.#columns = Object.entries<string | Column>(columns);
    this.#translated = this.#columns.flatMap(([member, column]) =>
      typeof column === "string" ? [] : [[member, column]],
    );
    const selected = this.#columns.map(([member, column]) => `${nameOf(column)} AS ${member}`);
    this.#select = `SELECT ${selected.join(", ")} FROM ${name}`;
  }

  get(database: Database, rest: string, ...values: SQLInputValue[]): R | undefined {
    return this.all(database, rest, ...values)[0];
  }

  /** `rest`: what follows the name of the table in the statement. */
  all(database: Database, rest: string, ...given: SQLInputValue[] | [Row]): R[] {
    return this.#records(database.all(`${this.#select} ${rest}`, ...given));
  }

  /** Those that pass every filter. */
  list(database: Database, filters: readonly Filter[], order: string, limit: number): R[] {
    return this.all(database, `${where(filters)} ORDER BY ${order} LIMIT :limit`, values(filters, { limit }));
  }

  /** `more`: columns that are no part of the record. */
  insert(database: Database, record: R, more: Row = {}): void {
    database.insert(this.#name, { ...more, ...this.#row(record) });
  }

  update(database: Database, id: string, changes: Partial<R>): void {
    const row = this.#row(changes);
    const assignments = Object.keys(row).map((name) => `${name} = :${name}`);
    if (assignments.length === 0) return;
    database.prepare(`UPDATE ${this.#name} SET ${assignments.join(", ")} WHERE id = :id`).run({ ...row, id });
  }

  #row(record: Partial<R>): Row {
    const known = this.#columns.filter(([member]) => member in record);
    const written = known.map(([member, column]) => {
      const value = record[member as keyof R];
      return [nameOf(column), typeof column === "string" ? value : column.write(value)];
    });
    return Object.fromEntries(written) as Row;
  }

  #records(rows: Record<string, unknown>[]): R[] {
    for (const row of rows) {
      for (const [member, { read }] of this.#translated) {
        const value = read(row[member]);
        if (value === undefined) delete row[member];
        else row[member] = value;
      }
    }
    return rows as R[];
  }
}

function nameOf(column: string | Column): string {
  return typeof column === "string" ? column : column.name;
}

/** One condition of a query, with the parameters that it names. */
export type Filter = readonly [condition: string, values: Row];

/** None when there is nothing to compare with. */
export function matching(column: string, value: SQLInputValue | undefined, operator = "=", name = column): Filter[] {
  return value === undefined ? [] : [[`${column} ${operator} :${name}`, { [name]: value }]];
}

/** Of lists in the order of (created_at, id). */
export function afterKey(after: readonly [createdAtMs: number, id: string] | undefined): Filter[] {
  if (after === undefined) return [];
  return [["(created_at, id) > (:after_time, :after_id)", { after_time: after[0], after_id: after[1] }]];
}

export function where(filters: readonly Filter[]): string {
  return filters.length === 0 ? "" : `WHERE ${filters.map(([condition]) => condition).join(" AND ")}`;
}

export function values(filters: readonly Filter[], more: Row): Row {
  return Object.assign({ ...more }, ...filters.map(([, named]) => named)) as Row;
}
