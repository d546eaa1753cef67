import { expect } from "vitest";
import type { RestClient } from "../../../support/rest-client.ts";

/** What the audit log must tell of something that was acknowledged. */
export interface ExpectedEvent {
  readonly type: string;
  readonly codebaseId?: string;
  readonly sandboxId?: string;
  readonly sessionId?: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

interface StoredEvent extends ExpectedEvent {
  readonly sequence: string;
}

/** What acknowledged calls must have left in the audit log. */
export class Testimony {
  #expected: ExpectedEvent[] = [];
  #read = 0;
  #pageToken = "";

  expect(event: ExpectedEvent): void {
    this.#expected.push(event);
  }

  /** Reads what is new in the log; every expected event is there, and no number is missing. Gives how many were expected. */
  async check(rest: RestClient): Promise<number> {
    const found: StoredEvent[] = [];
    for (let token = this.#pageToken; ; ) {
      const { json } = await rest.get(`/v1/events?page_size=500&page_token=${encodeURIComponent(token)}`);
      const page = json as unknown as { events: StoredEvent[]; nextPageToken: string };
      found.push(...page.events);
      token = page.nextPageToken;
      if (token === "") break;
      this.#pageToken = token;
    }
    const fresh = found.filter(({ sequence }) => Number(sequence) > this.#read);
    expect(fresh.map(({ sequence }) => Number(sequence))).toEqual(fresh.map((_, index) => this.#read + 1 + index));
    this.#read += fresh.length;
    const byKind = Map.groupBy(fresh, kindOf);
    const missing = this.#expected.filter(
      (event) => !byKind.get(kindOf(event))?.some((stored) => tells(stored, event)),
    );
    expect(missing, "events of what was acknowledged").toEqual([]);
    const count = this.#expected.length;
    this.#expected = [];
    return count;
  }
}

function kindOf({ type, codebaseId = "", sandboxId = "", sessionId = "" }: ExpectedEvent): string {
  // An event of a sandbox names its codebase too, which is not told apart here.
  return `${type} ${sandboxId === "" ? codebaseId : sandboxId} ${sessionId}`;
}

function tells({ data: stored = {} }: StoredEvent, { data: expected = {} }: ExpectedEvent): boolean {
  return Object.entries(expected).every(([name, value]) => stored[name] === value);
}
