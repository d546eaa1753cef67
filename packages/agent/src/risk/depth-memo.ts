/**
 * Remembers what was worked out about a name, and how deep in the search that was. Deep in it less is found, as the
 * search ends at a limit: so an answer serves the same depth and deeper ones, and is worked out anew nearer to the top.
 * By steps of ten, each name is worked out a few times at most, whatever refers to what.
 */
export class DepthMemo<T> {
  readonly #answers = new Map<string, { readonly step: number; readonly value: T }>();

  find(name: string, depth: number): { readonly value: T } | undefined {
    const answer = this.#answers.get(name);
    return answer !== undefined && answer.step <= stepOf(depth) ? answer : undefined;
  }

  keep(name: string, depth: number, value: T): T {
    this.#answers.set(name, { step: stepOf(depth), value });
    return value;
  }
}

function stepOf(depth: number): number {
  return Math.floor(depth / 10);
}
