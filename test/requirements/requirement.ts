/**
 * Something the product promises, as data. Each has a test whose title begins with its id, unless
 *
 * | field   | meaning                                                                       |
 * | ------- | ----------------------------------------------------------------------------- |
 * | shownBy | the tests of these other requirements show this one too                        |
 * | later   | it belongs to a part of the product that is not there yet; the text says which |
 */
export interface Requirement {
  readonly id: string;
  readonly sentence: string;
  readonly shownBy?: readonly string[];
  readonly later?: string;
}

/** Rows of id and sentence, optionally with what takes the place of a test of their own. */
export type Row = readonly [id: string, sentence: string, instead?: Pick<Requirement, "shownBy" | "later">];

export function requirements(rows: readonly Row[]): Requirement[] {
  return rows.map(([id, sentence, instead]) => ({ id, sentence, ...instead }));
}
