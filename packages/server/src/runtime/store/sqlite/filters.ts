import type { SQLInputValue } from "node:sqlite";
import type { Row } from "./database.ts";

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
